"""`heedful attend`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.options import (
    Device,
    FromLanguage,
    Reading,
    RunPath,
    SearchPrecision,
    Threads,
    ToLanguage,
    Weights,
    choose_languages,
    warn,
    with_flags,
)
from heedful.cli.standard_input import standard_input
from heedful.cli.terminal_text import echo, read_argument
from heedful.errors import SettingError
from heedful.runs.hub_names import run_path
from heedful.search.settings import SearchOptions


@with_flags("search", SearchOptions, target_language=("beam", "length_penalty", "max_length"))
def attend(
    run: RunPath,
    search: dict[str, Any],
    sentence: Annotated[
        str,
        typer.Argument(
            metavar="SENTENCE", help="Sentence to translate; - reads one line from stdin."
        ),
    ],
    out: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Output file: .html (interactive page), .pdf, .png or .svg (heat maps), or .json "
            "(the page's data). May be repeated.",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="Show attention for this translation instead of the run's own."),
    ] = None,
    weights: Weights = "default",
    second_run: Annotated[
        Path | None,
        typer.Option(
            "--beside",
            metavar="PATH",
            help="Another run, shown next to the first.",
            parser=run_path,
        ),
    ] = None,
    second_weights: Annotated[
        str,
        typer.Option(
            "--beside-weights",
            help="Weights of the run in --beside, such as step-1000; without --beside, RUN is "
            "shown next to itself with these weights.",
        ),
    ] = "",
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="Limit heat maps and --measures to this attention: encoder, decoder or cross; "
            "may be repeated.",
        ),
    ] = None,
    layer: Annotated[
        list[int] | None,
        typer.Option(
            metavar="N",
            help="Limit heat maps and --measures to this layer: 1 is the first, -1 the last; "
            "may be repeated.",
        ),
    ] = None,
    head: Annotated[
        list[int] | None,
        typer.Option(
            metavar="N",
            help="Limit heat maps and --measures to this head: 1 is the first, -1 the last; "
            "may be repeated.",
        ),
    ] = None,
    view: Annotated[
        str,
        typer.Option(
            help="Draw each head (heads), the mean of the heads (mean), or attention through all "
            "layers (rollout)."
        ),
    ] = "heads",
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Write the attention weights into the heat maps.")
    ] = False,
    measures: Annotated[
        bool, typer.Option("--measures", help="Print statistics of each head.")
    ] = False,
    target_language: Annotated[
        str | None,
        typer.Option(
            help="Language code of the tag to put before the line, such as de for >>de<<."
        ),
    ] = None,
    from_language: FromLanguage = "",
    to_language: ToLanguage = "",
    reading: Reading = None,
    device: Device = "auto",
    precision: SearchPrecision = "auto",
    threads: Threads = 0,
) -> None:
    """
    Show the attention of each head, and each step of decoding.

    Prints the translation with the probability of each subword and of its best alternatives. The
    page of --out FILE.html shows every head of every layer, each step of decoding and, without
    --target, the beam as a tree; the page needs no network. By default, a PDF has a page of heat
    maps for each layer and kind of attention; a PNG or SVG file has a row for each. The sentence
    and --target may have at most 200 subwords each.
    """
    from heedful.analysis.attention_files import (
        AttentionSelection,
        check_files,
        format_lines,
        format_measures,
        write_files,
    )

    if target is not None and search:
        flag = "--" + next(iter(search)).replace("_", "-")
        raise SettingError(
            f"{flag} is a search option, but with --target there is no search; leave one of the "
            "two options out."
        )
    options = SearchOptions(**search)
    choice = AttentionSelection(
        tuple(kind or ()), tuple(layer or ()), tuple(head or ()), view, numbers
    )
    outs = out or []
    check_files(outs, AttentionSelection(view=view, numbers=numbers) if measures else choice)
    text = _read_sentence() if sentence == "-" else read_argument(sentence)

    from heedful.analysis.attend import attend_all, open_models

    models = open_models(
        run,
        weights,
        second_run=second_run,
        second_weights=second_weights,
        device=device,
        precision=precision,
        threads=threads,
        reading=reading,
    )
    chosen = {
        name: choose_languages(model, from_language, to_language, target_language, has_tags=True)
        for name, model in models.items()
    }
    models = {name: model for name, (model, _) in chosen.items()}
    tag, *_ = [tag for _, tag in chosen.values()]
    record = attend_all(
        models,
        f"{tag} {text}" if tag and text.strip() else text,
        None if target is None else read_argument(target),
        options,
        warn=warn,
    )
    lines = [*format_lines(record), *(format_measures(record, choice) if measures else ())]
    write_files(record, outs, choice)
    for line in lines:
        echo(line)
    for path in outs:
        echo(f"wrote {path}")


def _read_sentence() -> str:
    """Read stdin without blank lines; later checks require a single line."""
    from heedful.text.lines import decode_lines

    return "\n".join(line for line in decode_lines(standard_input(), "stdin") if line.strip())
