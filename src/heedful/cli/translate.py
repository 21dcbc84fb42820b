"""`heedful translate`."""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from heedful.cli.options import (
    AlignBy,
    Alignments,
    Device,
    Engine,
    Format,
    FromLanguage,
    Reading,
    SearchPrecision,
    Threads,
    ToLanguage,
    Weights,
    check_output,
    check_runs,
    check_stop,
    choose_languages,
    refuse,
    run_argument,
    warn,
    with_flags,
)
from heedful.cli.standard_input import standard_input
from heedful.cli.terminal_text import write_utf8
from heedful.search.settings import Sampling, SearchOptions


@with_flags(
    "search",
    SearchOptions,
    target_language=(
        "beam",
        "length_penalty",
        "coverage_penalty",
        "max_length",
        "min_length",
        "n_best",
    ),
    target_prefix=("stop", "rules", "no_repeat_ngram", "diverse_groups", "diversity_strength"),
)
def translate(
    run: Annotated[
        list[Path],
        run_argument("A run folder; several with the same subwords form an ensemble."),
    ],
    search: dict[str, Any],
    input: Annotated[Path | None, typer.Option(help="Text to translate; by default stdin.")] = None,
    output: Annotated[Path | None, typer.Option(help="Output file; by default stdout.")] = None,
    weights: Weights = "default",
    target_language: Annotated[
        str | None,
        typer.Option(
            help="Language code of the tag to put before every line, such as de for >>de<<."
        ),
    ] = None,
    from_language: FromLanguage = "",
    to_language: ToLanguage = "",
    sample: Annotated[
        bool,
        typer.Option(
            "--sample",
            help="Sample translations instead of searching for the best; the same translation may "
            "appear several times.",
        ),
    ] = False,
    temperature: Annotated[
        float | None,
        typer.Option(
            help="With --sample or --mbr: divisor of the log-probabilities; below 1, probable "
            "subwords are drawn more often."
        ),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(help="With --sample or --mbr: draw only from the K most probable subwords."),
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            help="With --sample or --mbr: draw only from the smallest set of most probable "
            "subwords whose total probability is at least P."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="With --sample or --mbr: random seed; 0 by default.")
    ] = None,
    mbr: Annotated[
        int,
        typer.Option(
            min=0,
            help="Sample this many translations, and write the one most similar to the others; 0 "
            "is off.",
        ),
    ] = 0,
    target_prefix: Annotated[
        Path | None,
        typer.Option(
            help="File with the first words of each translation, one line per input line."
        ),
    ] = None,
    force_phrases: Annotated[
        Path | None,
        typer.Option(
            help="File with a line for each input line: the phrases that its translation must "
            "contain, separated by tabs."
        ),
    ] = None,
    avoid_phrases: Annotated[
        Path | None,
        typer.Option(
            help="File with a line for each input line: the phrases that its translation must "
            "not contain, separated by tabs."
        ),
    ] = None,
    join_lines: Annotated[
        bool,
        typer.Option(
            "--join-lines",
            help="Join the lines of each paragraph, for text from e-mails and PDFs; the output "
            "has one line for each paragraph and each empty line.",
        ),
    ] = False,
    scores: Annotated[
        bool,
        typer.Option(
            "--scores",
            help="Write the score before each translation; n-best lists always contain scores.",
        ),
    ] = False,
    alignments: Alignments = False,
    align_by: AlignBy = "",
    replace_unknown: Annotated[
        bool,
        typer.Option(
            "--replace-unknown",
            help="Replace each unknown word in a translation with the source words aligned to it.",
        ),
    ] = False,
    dictionary: Annotated[
        Path | None,
        typer.Option(
            help="Like --replace-unknown, but translate the source words with this file: a word, a "
            "tab and its translation on each line."
        ),
    ] = None,
    reading: Reading = None,
    glossary: Annotated[
        Path | None,
        typer.Option(help="File with a term, a tab and its translation on each line."),
    ] = None,
    protected: Annotated[
        Path | None,
        typer.Option(help="File with strings that stay unchanged, one per line."),
    ] = None,
    long_lines: Annotated[
        Literal["split", "cut"],
        typer.Option(
            help="How to treat a line that is too long for the model: split it into sentences, or "
            "cut it; with exact reading, it is always cut.",
        ),
    ] = "split",
    format: Format = "text",
    engine: Engine = "torch",
    device: Device = "auto",
    precision: SearchPrecision = "auto",
    threads: Threads = 0,
) -> None:
    """
    Translate lines from stdin or a file, in order.

    Search options that are not given are taken from the run. An empty line stays empty. Each
    translation is one line: control characters from byte tokens become spaces, and a warning
    reports their number. Output is written whenever input pauses, so the command can be used in a
    pipe or interactively.

    With --n-best above 1, each line of --format text is: index of the input line (from 0) ||| text
    ||| score. A search never lists a text twice, so a list may have fewer entries than --n-best; an
    empty line has one entry. In these lists, ||| in a text is written as &#124;&#124;&#124;. With
    --alignments, the word alignment comes last: in these lists after |||, otherwise after a tab.

    The files of --target-prefix, --force-phrases and --avoid-phrases need one line, possibly empty,
    for each line of the input.

    A run with data.reading=text copies emoji and placeholders into the translation, and restores
    capitals; --format jsonl reports these changes. An input file that ends in .html, .htm, .srt,
    .vtt, .md, .docx or .odt is translated as a whole. Its layout is kept, and --output is needed.
    """
    check_runs(run, "translate")
    if "stop" in search:
        check_stop(search["stop"])
    if align_by and not (alignments or replace_unknown or dictionary):
        refuse("--align-by", "needs --alignments, --replace-unknown or --dictionary.")

    from heedful.alignment.unknown_words import read_dictionary
    from heedful.files import replacing_file
    from heedful.serve.documents.document_endings import is_document
    from heedful.text.corpus import one_file, read_lines
    from heedful.text.lines import decode_lines
    from heedful.text.reading.terms import read_glossary, read_protected
    from heedful.text.skipped_rows import SkippedRows
    from heedful.translation.engine import check_engine

    drawn = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    sampling = _sampling(sample or mbr > 0, drawn)
    n_best = search["n_best"]
    options = SearchOptions(**search | {"n_best": mbr or n_best, "sample": sampling})
    if force_phrases is not None:
        options.check_constraints()
    if 0 < mbr < n_best:
        refuse("--mbr", f"must be at least --n-best ({n_best}), but is {mbr}.")
    known = read_dictionary(dictionary) if dictionary is not None else replace_unknown
    check_engine(
        engine,
        options,
        {
            "mbr": mbr,
            "force-phrases": force_phrases,
            "avoid-phrases": avoid_phrases,
            "alignments": alignments,
            "align-by": align_by,
            "replace-unknown": replace_unknown,
            "dictionary": dictionary,
            "weights": weights != "default",
        },
    )
    side_files = {
        "target_prefix": target_prefix,
        "force_phrases": force_phrases,
        "avoid_phrases": avoid_phrases,
    }
    named_files = {f"--{name.replace('_', '-')}": path for name, path in side_files.items()}
    whole_file = input if is_document(input) else None
    if whole_file is not None:
        _check_whole_file(
            output,
            {
                "--n-best": n_best > 1,
                "--mbr": mbr,
                "--scores": scores,
                "--alignments": alignments,
                "--replace-unknown": replace_unknown,
                "--dictionary": dictionary,
                "--format": format != "text",
                "--join-lines": join_lines,
                "--long-lines": long_lines != "split",
                **named_files,
            },
        )
    text = None if input is None or whole_file is not None else one_file(input)
    check_output(
        output,
        {
            "--input": text.path if text else whole_file,
            **named_files,
            "--dictionary": dictionary,
            "--glossary": glossary,
            "--protected": protected,
        },
    )
    terms = None if glossary is None else read_glossary(glossary, warn)
    strings = None if protected is None else read_protected(protected)
    skipped = SkippedRows()
    lines = decode_lines(standard_input(), "stdin") if text is None else read_lines(text, skipped)

    from heedful.engines import open_engine
    from heedful.translation.translate import OutputFormat, translate_lines

    translator = open_engine(
        engine,
        run,
        weights=weights,
        device=device,
        precision=precision,
        threads=threads,
        align_by=align_by if alignments or replace_unknown or dictionary else None,
        reading=reading,
    )
    translator, tag = choose_languages(
        translator, from_language, to_language, target_language, has_tags=True
    )
    if whole_file is not None and output is not None:
        from heedful.serve.documents.translate_file import translate_file

        content = translate_file(
            translator,
            whole_file,
            options,
            language=(translator.run.direction.source if engine == "torch" else "") or "en",
            tag=tag,
            aligns=len(run) == 1 and translator.reader.aligns,
            glossary=terms,
            protected=strings,
            warn=warn,
        )
        with replacing_file(output) as stream:
            stream.buffer.write(content)
        return
    if output is None:
        write_utf8()
    place = nullcontext(sys.stdout) if output is None else replacing_file(output)
    with place as stream:
        translate_lines(
            translator,
            _prepare(lines, join_lines, tag),
            stream,
            OutputFormat(format, n_best, scores, alignments),
            warn,
            options,
            name="stdin" if input is None else str(input),
            side_files={name: path for name, path in side_files.items() if path is not None},
            mbr=mbr > 0,
            align_by=align_by,
            replace_unknown=known,
            glossary=terms,
            protected=strings,
            long_lines=long_lines,
        )
    for note in skipped.notes():
        warn(note)


def _check_whole_file(output: Path | None, options: dict[str, Any]) -> None:
    """Refuse options that do not apply to a file that is translated as a whole."""
    from importlib.util import find_spec

    from heedful.errors import MissingExtra

    if find_spec("sentencex") is None:
        raise MissingExtra(
            "a document such as .html or .docx needs sentencex, which is not installed; install "
            "it with: pip install 'heedful[documents]'"
        )
    if output is None:
        refuse("--input", "needs --output for a document such as .html or .docx.")
    for option, value in options.items():
        if value:
            refuse(
                option,
                "applies to lines, but a document is translated as a whole; leave the option out.",
            )


def _prepare(lines: Iterator[str], join_lines: bool, tag: str) -> Iterator[str]:
    """Join wrapped lines if requested, and put the language tag, if any, before each line."""
    from heedful.text.wrapped_lines import join_lines as join_wrapped_lines

    joined = join_wrapped_lines(lines) if join_lines else lines
    return (_prepend_tag(line, tag) for line in joined) if tag else joined


def _prepend_tag(line: str, tag: str) -> str:
    """Put a language tag before the words of a line, after its leading blanks."""
    from heedful.text.blanks import outer_blanks

    before, _ = outer_blanks(line)
    words = line[len(before) :]
    return f"{before}{tag} {words}" if words else line


def _sampling(wanted: bool, details: dict[str, Any]) -> Sampling | None:
    """Collect the sampling options that were set; refuse them without --sample or --mbr."""
    chosen = {name: value for name, value in details.items() if value is not None}
    if wanted:
        return Sampling(**chosen)
    for name in chosen:
        option = "--" + name.replace("_", "-")
        refuse(option, "applies only to sampling; add --sample or --mbr, or leave the option out.")
    return None
