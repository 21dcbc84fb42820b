"""`heedful evaluate`."""

import json
from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    hypothesis: Annotated[Path, typer.Option(help="Translations, one a line, detokenised.")],
    reference: Annotated[list[str], typer.Option(help="References; may be repeated.")],
    language: Annotated[str, typer.Option(help="Code of the target language.")] = "",
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore case.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Score translations: sacreBLEU, chrF and TER, each with its signature."""
    from heedful.workflow.evaluate import evaluate_files

    scores = evaluate_files(hypothesis, reference, language=language, lowercase=lowercase).to_dict()
    if as_json:
        typer.echo(json.dumps(scores, indent=2))
        return
    names = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER"}
    for key, name in names.items():
        typer.echo(f"{name:<5}{scores[key]['score']:6.2f}  {scores[key]['signature']}")
