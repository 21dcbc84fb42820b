"""`heedful parse`: constituency trees in and out."""

import typer

from heedful.cli.plugin_option import with_plugins
from heedful.tasks.parsing.cli.draw import draw
from heedful.tasks.parsing.cli.evaluate import evaluate
from heedful.tasks.parsing.cli.paper_table4 import table4
from heedful.tasks.parsing.cli.predict import predict
from heedful.tasks.parsing.cli.train import train

app = typer.Typer(
    name="parse",
    help="Train a parser of sentences, parse, score and draw trees.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
TRAINS = ("parse", "train")
PAPER = (table4,)
"""Commands of `heedful paper`."""
app.command()(with_plugins(train))
app.command()(with_plugins(predict))
app.command()(evaluate)
app.command()(draw)
