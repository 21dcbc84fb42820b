"""Names of options from before the first release are refused, and the new ones named."""

import pytest
import typer

from heedful.cli.main import app
from heedful.config.renames import OPTIONS


@pytest.mark.parametrize(
    ("command", "old", "new"),
    [(command, *pair) for command, options in OPTIONS.items() for pair in options.items()],
)
def test_an_old_option_is_refused_and_the_new_one_named(heedful_cli, command, old, new):
    group = typer.main.get_command(app)
    for name in command.split():
        group = group.commands[name]
    names = {name for option in group.params for name in option.opts}
    assert new in names
    assert old not in names
    for given in ((old, "x"), (f"{old}=x",)):
        done = heedful_cli(*command.split(), *given)
        assert done.returncode == 2
        assert f"{old} is now called {new};" in done.stderr
