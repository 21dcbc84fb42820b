"""`heedful paper table1`."""

from pathlib import Path

import typer

from heedful.cli.options import Json, Threads, say
from heedful.cli.paper_figures import echo_table
from heedful.cli.paper_table2 import Budget, TableFolder
from heedful.cli.terminal_text import echo_json


def table1(
    budget: Budget = "2m",
    out: TableFolder = Path("table1"),
    threads: Threads = 0,
    as_json: Json = False,
) -> None:
    """
    Count the operations of Table 1's layers, and time them.

    Counted costs include projections. The number of sequential operations is the length of the
    longest chain of dependent matrix products. Longest paths are found by testing which inputs have
    a nonzero gradient.
    Times are measured for several lengths and widths, in 3 to 30 rounds, depending on the budget.
    After an interruption, the same command continues the work.
    """
    from heedful.paper.table1 import COUNT_HEADING, make_table1
    from heedful.settings.durations import parse_duration

    table = make_table1(out, parse_duration(budget, "--budget"), threads=threads, say=say)
    if as_json:
        echo_json(table.to_dict())
        return
    typer.echo(COUNT_HEADING)
    echo_table(table.count_rows)
    typer.echo(f"\n{table.time_heading}")
    echo_table(table.time_rows)
    typer.echo()
    for conclusion in table.conclusions:
        typer.echo(conclusion)
    typer.echo(f"\n{out}")
