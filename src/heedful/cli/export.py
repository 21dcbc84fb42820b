"""`heedful export`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import AcceptDifferences, Weights, warn
from heedful.cli.terminal_text import echo
from heedful.exchange.registry import listed, writer_names


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    out: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write.")],
    kind: Annotated[
        str,
        typer.Option("--format", help=f"Toolkit to write for: {listed(writer_names())}."),
    ],
    weights: Weights = "default",
    quantization: Annotated[
        str,
        typer.Option(
            help="Number format of the weights for ctranslate2: float32, float16, bfloat16, int16, "
            "int8 and so on; by default float32."
        ),
    ] = "",
    positions: Annotated[
        int,
        typer.Option(
            min=2,
            help="Longest text in tokens, for ctranslate2: rows of its table of positions.",
        ),
    ] = 1024,
    sentences: Annotated[
        Path | None,
        typer.Option(
            help="Source sentences for the comparison, one per line; by default generated ones."
        ),
    ] = None,
    accept_differences: AcceptDifferences = False,
) -> None:
    """Write a model for another toolkit, and compare the two."""
    from heedful.exchange.convert import export_model, read_sentences
    from heedful.exchange.formats import WriteOptions

    parity, notes = export_model(
        run,
        kind,
        out,
        weights=weights,
        options=WriteOptions(quantization, positions),
        sentences=read_sentences(sentences),
    )
    for note in notes:
        warn(note)
    echo(f"{out}: {parity}.")
    if not accept_differences:
        parity.check_outputs(out)
