"""The pages that list commands, recipes, extras and layers leave none out."""

import re
import tomllib

from tests.support.pages import DOCS, ROOT

from heedful.cli.main import app
from heedful.config.recipes import recipe_names

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def text_of(page):
    return (DOCS / page).read_text(encoding="utf-8")


def test_every_command_is_on_the_page_of_commands():
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    groups = [group.typer_instance.info.name for group in app.registered_groups]
    assert groups
    for name in (*names, *groups):
        assert f"`heedful {name}" in text_of("commands.md")


def test_every_recipe_is_on_the_page_of_recipes():
    listed = set(re.findall(r"`([\w.-]+)`", text_of("recipes.md")))
    names = {name for name in recipe_names() if not name.startswith("table3-")}
    assert names - listed == set()


def test_the_extras_are_those_of_the_package():
    project = PROJECT["project"]
    extras = dict(re.findall(r"(?m)^\| `(\w+)` \| .* \| ([^|]*) \|$", text_of("howto/install.md")))
    packages = {
        extra: ", ".join(re.match(r"[\w.-]+", requirement)[0] for requirement in requirements)
        for extra, requirements in project["optional-dependencies"].items()
        if extra not in ("dev", "docs")
    }
    assert extras == packages
    (torch,) = [name for name in project["dependencies"] if name.startswith("torch")]
    index = "--index-url https://download.pytorch.org/whl/cpu"
    assert f"'{torch}' {index}" in text_of("howto/install.md")


def test_the_layers_are_those_of_the_contract():
    layers = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    assert ", ".join(f"`{layer}`" for layer in layers) in text_of("how-it-is-built.md")
