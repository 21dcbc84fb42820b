"""`heedful data`: everything before training."""

from heedful.cli.data_get import get, list_corpora
from heedful.cli.options import command_group
from heedful.cli.plugin_option import with_plugins
from heedful.cli.prepare import prepare
from heedful.cli.show import show

app = command_group("data", "Get text, prepare it, and show what a model is trained on.")
app.command("list")(list_corpora)
app.command()(get)
app.command()(with_plugins(prepare))
app.command()(with_plugins(show))
