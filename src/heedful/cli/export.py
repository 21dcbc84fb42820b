"""`heedful export`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import AcceptDifferences, RunPath, Sentences, Weights, warn
from heedful.cli.terminal_text import echo
from heedful.exchange.registry import list_toolkits, writer_names

LicenseName = Annotated[
    str,
    typer.Option(
        "--license",
        help="License for the model card (README.md): an identifier of the Hugging Face hub, such "
        "as cc-by-4.0, or a name. By default the card states no license.",
    ),
]
Datasets = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset",
        help="Dataset on the Hugging Face hub that the model was trained on, for the model card; "
        "may be repeated.",
    ),
]
Scores = Annotated[
    list[Path] | None,
    typer.Option(
        help="Scores for the model card: output of evaluate --json for these weights, in a file "
        "named after the test set; may be repeated."
    ),
]


def export(
    run: RunPath,
    out: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write.")],
    kind: Annotated[
        str,
        typer.Option("--format", help=f"Toolkit to write for: {list_toolkits(writer_names())}."),
    ],
    weights: Weights = "default",
    quantization: Annotated[
        str,
        typer.Option(
            help="For ctranslate2: number format of the weights, such as float16, bfloat16, int16 "
            "or int8; by default float32."
        ),
    ] = "",
    positions: Annotated[
        int,
        typer.Option(
            min=2,
            help="Number of positions in the exported model, which limits the number of tokens "
            "in a text, including the end symbol; ignored by onnx and by BART with "
            "learned positions.",
        ),
    ] = 1024,
    sentences: Sentences = None,
    license_name: LicenseName = "",
    datasets: Datasets = None,
    scores: Scores = None,
    accept_differences: AcceptDifferences = False,
) -> None:
    """Export a run to another toolkit, and compare the two models."""
    from heedful.exchange.card.model_card import CardFacts
    from heedful.exchange.convert import export_model, read_sentences
    from heedful.exchange.formats import WriteOptions

    parity, notes = export_model(
        run,
        kind,
        out,
        weights=weights,
        options=WriteOptions(quantization, positions),
        sentences=read_sentences(sentences),
        facts=CardFacts(license_name, tuple(datasets or ()), tuple(scores or ())),
    )
    for note in notes:
        warn(note)
    echo(f"{out}: {parity}.")
    if not accept_differences:
        parity.check_outputs(out)
