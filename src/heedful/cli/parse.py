"""`heedful parse`: constituency trees in and out."""

import typer

from heedful.cli.parse_draw import draw
from heedful.cli.parse_evaluate import evaluate
from heedful.cli.parse_predict import predict
from heedful.cli.parse_train import train

app = typer.Typer(
    name="parse",
    help="Train a parser of sentences, parse, score and draw trees.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command()(train)
app.command()(predict)
app.command()(evaluate)
app.command()(draw)
