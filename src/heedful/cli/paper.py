"""`heedful paper`: the paper's figures and claims, made again here."""

import typer

from heedful.cli.claims import positions, scaling
from heedful.cli.figures import figure3, figure4, figure5, heads

app = typer.Typer(
    name="paper",
    help="Make figures of the paper again, and check what it says about positions and scaling.",
    no_args_is_help=True,
)
app.command()(figure3)
app.command()(figure4)
app.command()(figure5)
app.command()(heads)
app.command()(positions)
app.command()(scaling)
