"""`heedful paper table3`."""

from pathlib import Path

import typer

from heedful.cli.options import Json, Threads, say
from heedful.cli.paper_figures import echo_table
from heedful.cli.paper_table2 import (
    Budget,
    Data,
    EarlierPlan,
    SourceLanguage,
    TableFolder,
    Vocabulary,
)
from heedful.cli.terminal_text import echo_json


def table3(
    data: Data = None,
    source_language: SourceLanguage = "en",
    vocabulary: Vocabulary = 4000,
    budget: Budget = "1h",
    out: TableFolder = Path("table3"),
    plan: EarlierPlan = None,
    threads: Threads = 0,
    as_json: Json = False,
) -> None:
    """
    Train the models of Table 3, scaled down, and compare them.

    All widths are a quarter (without --data an eighth) of the paper's, and all depths are half. All
    models are trained for the same number of steps, except the big model, which is trained for
    three times as many. Two more seeds of the base model show how much results vary. Before
    training, about 70% of the budget is converted to steps. After an interruption, the same command
    continues the work.
    """
    from heedful.experiments.corpus import choose_corpus
    from heedful.files import make_folder
    from heedful.paper.table3 import make_table3
    from heedful.settings.durations import parse_duration

    seconds = parse_duration(budget, "--budget")
    make_folder(out)  # a folder that cannot be written is refused before the work
    corpus = choose_corpus(data, source_language, vocabulary, out / "text")
    table = make_table3(corpus, out, seconds, plan=plan, threads=threads, say=say)
    if as_json:
        echo_json(table.to_dict())
        return
    typer.echo(f"Published and measured: {table.text}")
    echo_table(table.rows)
    typer.echo()
    for conclusion in table.conclusions:
        typer.echo(conclusion)
    typer.echo(f"\n{out}")
