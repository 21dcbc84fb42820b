"""`heedful paper claims`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import say
from heedful.cli.paper_figures import echo_table
from heedful.cli.paper_table2 import Json


def claims(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Claims to decide; all if none.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Output folder; what it holds is not measured again.")
    ] = Path("claims"),
    as_json: Json = False,
) -> None:
    """
    Decide what is said of the paper's parts by measurements.

    Claims: convolution, shift, batch-norm, gradients, dot-product, parallel. Each gets a verdict
    with its numbers, a picture, and its place on a page; nothing is trained.
    """
    from heedful.paper.claims.check import CLAIMS, check_claims, to_dict

    found = check_claims(names or [], out, say)
    if as_json:
        typer.echo(json.dumps(to_dict(found), indent=2, ensure_ascii=False))
        return
    for name, checked in found.items():
        verdict = "holds" if checked.holds else "does not hold here"
        typer.echo(f"{CLAIMS[name].said} ({CLAIMS[name].source}): {verdict}")
        typer.echo(checked.sentence)
        echo_table(checked.rows)
        typer.echo()
    typer.echo(out)
