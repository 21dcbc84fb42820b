"""`heedful parse`: the commands of constituency parsing."""

from heedful.cli.options import command_group
from heedful.cli.plugin_option import with_plugins
from heedful.tasks.parsing.cli.draw import draw
from heedful.tasks.parsing.cli.evaluate import evaluate
from heedful.tasks.parsing.cli.paper_table4 import table4
from heedful.tasks.parsing.cli.predict import predict
from heedful.tasks.parsing.cli.train import train

app = command_group("parse", "Train a parser, parse sentences, and score and draw trees.")
TRAINS = ("parse", "train")
PAPER = (table4,)
"""Commands that parsing adds to `heedful paper`."""
app.command()(with_plugins(train))
app.command()(with_plugins(predict))
app.command()(evaluate)
app.command()(draw)
