"""`heedful import`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import AcceptDifferences, Sentences, run_argument, warn
from heedful.cli.terminal_text import echo
from heedful.exchange.registry import is_class, list_toolkits, reader_names
from heedful.runs.hub_names import hub_name


def import_(
    path: Annotated[
        Path,
        run_argument(
            "Folder or file of the model to import, or its name ORG/NAME on Hugging Face's hub.",
            "PATH-OR-NAME",
        ),
    ],
    kind: Annotated[
        str,
        typer.Option(
            "--from",
            help=f"Toolkit of the model: {list_toolkits(reader_names())}.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Run folder to create.")],
    source_language: Annotated[
        str, typer.Option(help="Code of the source language, if the model does not name it.")
    ] = "",
    target_language: Annotated[
        str, typer.Option(help="Code of the target language, if the model does not name it.")
    ] = "",
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            help="Tokenizer (a .model file or BPE codes), if it is not next to the model."
        ),
    ] = None,
    sentences: Sentences = None,
    task: Annotated[
        str,
        typer.Option(
            help="Task of a T5 model, such as translation_en_to_de; the task determines the source "
            "prefix."
        ),
    ] = "",
    source_prefix: Annotated[
        str,
        typer.Option(
            help="For T5 models: text to put before each source line; cannot be combined with "
            "--task."
        ),
    ] = "",
    accept_differences: AcceptDifferences = False,
) -> None:
    """Convert another toolkit's model to a run, and check it."""
    from heedful.exchange.convert import import_model, read_sentences
    from heedful.exchange.formats import ReadOptions

    if is_class(kind) and (name := hub_name(path)):
        from heedful.exchange.hub.fetch import download_original

        path = download_original(name)
    report, notes = import_model(
        kind,
        path,
        out,
        options=ReadOptions(source_language, target_language, tokenizer, task, source_prefix),
        sentences=read_sentences(sentences),
    )
    for note in notes:
        warn(note)
    echo(f"{out}: {report}.")
    if not accept_differences:
        report.check_outputs(out)
