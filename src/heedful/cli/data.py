"""`heedful data`: everything before training."""

import typer

from heedful.cli.data_get import get, list_corpora
from heedful.cli.plugin_option import with_plugins
from heedful.cli.prepare import prepare
from heedful.cli.show import show

app = typer.Typer(
    name="data",
    help="Get text, prepare it, and show what a model is trained on.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("list")(list_corpora)
app.command()(get)
app.command()(with_plugins(prepare))
app.command()(with_plugins(show))
