"""`heedful paper positions` and `heedful paper scaling`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Json, Weights, refuse
from heedful.cli.paper_figures import echo_table
from heedful.cli.terminal_text import echo_json

Out = Annotated[Path | None, typer.Option(help="File of the figure: .png, .svg, .pdf or .html.")]


def positions(
    d_model: Annotated[
        int, typer.Option(min=4, max=2048, help="Width of the vectors; it must be even.")
    ] = 128,
    length: Annotated[
        int,
        typer.Option(
            min=2, max=1024, help="Number of positions of the longest sentence in training."
        ),
    ] = 64,
    run: Annotated[
        Path | None,
        typer.Option(
            help="A run trained with model.positions=learned; its positions are checked too."
        ),
    ] = None,
    out: Out = None,
    as_json: Json = False,
    weights: Weights = "default",
) -> None:
    """
    Check positional encodings by four criteria, and draw them.

    The encodings are index, one-hot, normalized index, and sinusoids as in the paper's text and in
    the authors' code. The four criteria: each position has its own encoding; encodings are
    deterministic; neighbors always have the same distance; sentences longer than in training are
    possible. Each result is printed with the number that it is based on. The dot products between
    positions are checked too: whether they depend on the distance alone, and how they decrease with
    the distance.
    """
    if d_model % 2:
        refuse("--d-model", f"must be even, but is {d_model}.")
    from heedful.paper.claim_checks import check_positions
    from heedful.visualise.report_page import check_report_ending

    if out is not None:
        check_report_ending(out)
    checked = check_positions(d_model, length, run, weights)
    if out is not None:
        checked.draw(out)
    if as_json:
        echo_json(checked.as_json)
        return
    for number, table in enumerate((checked.marks, checked.reasons, checked.products)):
        if number:
            typer.echo()
        echo_table(table)
    if out is not None:
        typer.echo(f"\n{out}")


def scaling(
    largest: Annotated[int, typer.Option(min=1, max=4096, help="The largest d_k.")] = 1024,
    keys: Annotated[int, typer.Option(min=2, max=512, help="Number of keys for each query.")] = 16,
    queries: Annotated[int, typer.Option(min=40, help="Number of queries for each d_k.")] = 4000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 1,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """
    Show why attention divides by the square root of d_k.

    Queries and keys are drawn with independent standard normal components. Three quantities are
    measured: the variance of dot products, the softmax's gradient (the sum of p (1 - p) over the
    keys), and the gradient with respect to the query. Each quantity is measured without a scale,
    with 1/sqrt(d_k) and with 1/d_k. Margins are 95% confidence intervals.
    """
    from heedful.paper.claim_checks import measure_scaling
    from heedful.visualise.report_page import check_report_ending

    if out is not None:
        check_report_ending(out)
    measured = measure_scaling(largest, keys, queries, seed)
    if out is not None:
        measured.draw(out)
    if as_json:
        echo_json(measured.as_json)
        return
    echo_table(measured.sheet.rows)
    typer.echo(measured.sheet.caption)
    if out is not None:
        typer.echo(str(out))
