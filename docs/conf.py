"""Settings of the documentation site: `make docs` writes it to `build/site`."""

from pathlib import Path

import click
import typer.main
from sphinx.application import Sphinx

from heedful import __version__
from heedful.cli.main import app

project = "heedful"
release = __version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser"]
autosummary_generate = True
autodoc_default_options = {"members": True}
autodoc_typehints = "none"  # the docstrings give types and shapes in words
numpydoc_show_class_members = False
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns: list[str] = []
html_theme = "furo"
html_title = f"heedful {release}"
html_static_path: list[str] = []


def write_commands(site: Sphinx) -> None:
    """Write the page of every command and option, as `--help` tells them."""
    lines = ["# Commands", "", "Made from what `--help` prints.", ""]
    for name, command in _commands(typer.main.get_command(app), "heedful"):
        arguments = " ".join(_argument(p) for p in command.params if p.param_type_name != "option")
        lines += [f"## `{name}`", "", f"`{name} {arguments} …`".replace("  ", " "), ""]
        lines += [_text(command.help or ""), ""]
        for option in command.params:
            names = ", ".join(f"`{one}`" for one in option.opts) or f"`{option.name}`"
            lines += [names, f": {_text(getattr(option, 'help', '') or '')}", ""]
    path = Path(site.srcdir) / "generated" / "commands.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines), encoding="utf-8")


def _commands(command: click.Command, name: str) -> list[tuple[str, click.Command]]:
    """List the commands that do something, groups opened."""
    inner = getattr(command, "commands", None)
    if inner is None:
        return [(name, command)]
    return [pair for key in inner for pair in _commands(inner[key], f"{name} {key}")]


def _argument(parameter: click.Parameter) -> str:
    """Write an argument as the help does."""
    name = (parameter.metavar or parameter.name or "").upper()
    return name if parameter.required else f"[{name}]"


def _text(text: str) -> str:
    """Keep what looks like markup from being any."""
    return text.replace("<", "\\<").replace("*", "\\*").replace("\b", "")


def setup(site: Sphinx) -> None:
    """Have the page of commands written before sources are read."""
    site.connect("builder-inited", write_commands)
