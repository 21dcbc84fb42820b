"""`heedful score`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Device, Format, Precision, Threads, Weights, check_choice


def score(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    source: Annotated[list[str], typer.Option(help="Source text.")],
    target: Annotated[list[str], typer.Option(help="Its translations, line by line.")],
    weights: Weights = "default",
    format: Format = "text",
    device: Device = "auto",
    precision: Precision = "auto",
    threads: Threads = 0,
) -> None:
    """Print the log-probability of each given pair (natural logarithm, end symbol included)."""
    check_choice("--format", format, ("text", "jsonl"))
    check_choice("--precision", precision, ("auto", "fp32", "bf16"))

    from heedful.data.corpus import Corpus, expand
    from heedful.workflow.score import score_lines
    from heedful.workflow.translator import Translator

    corpus = Corpus(tuple(expand(source)), tuple(expand(target)))
    translator = Translator.load(
        run, weights=weights, device=device, precision=precision, threads=threads
    )
    for line in score_lines(translator, corpus, format):
        typer.echo(line)
