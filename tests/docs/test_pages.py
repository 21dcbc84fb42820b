"""
Every command of the tutorial and of every page that explains is executed, in the order of the page.

Of the how-to pages the words are compared with the command line here; tests/soak/test_howto.py
executes them.
"""

import re
import shlex

import pytest
import typer.main
from tests.support.pages import (
    DOCS,
    HOWTO,
    KEPT,
    PAGES,
    TUTORIAL,
    commands,
    follow,
    follow_tutorial,
    heedful_words,
)

from heedful.cli.main import app
from heedful.config.schema import setting_fields


@pytest.fixture(scope="module")
def begun(zygote, tmp_path_factory):
    """The folder that the tutorial leaves; copied for each other page."""
    folder = tmp_path_factory.mktemp("docs")
    follow_tutorial(zygote, folder)
    return folder


def test_the_tutorial_works_in_an_empty_folder(begun):
    assert commands(TUTORIAL)[0].startswith("heedful data get")
    for name, count in KEPT.items():
        for language in ("en", "fr"):
            text = (begun / f"{name}.{language}").read_text(encoding="utf-8")
            assert len(text.splitlines()) == count
    assert (begun / "runs" / "en-fr" / "average").is_dir()


@pytest.mark.parametrize("page", sorted({*PAGES} - {*HOWTO, TUTORIAL}))
def test_the_commands_of_a_page_work(page, zygote, begun, corpora, tmp_path):
    follow(page, zygote, begun, corpora, tmp_path)


@pytest.mark.parametrize("page", HOWTO)
def test_the_commands_of_a_howto_page_have_words_that_exist(page):
    program = typer.main.get_command(app)
    for line in commands(page):
        if line.startswith("heedful -c "):
            compile(shlex.split(line)[2], page, "exec")
            continue
        for words in heedful_words(line):
            command, left = program, [*words]
            while hasattr(command, "commands"):
                command = command.commands[left.pop(0)]
            known = {name for parameter in command.params for name in parameter.opts}
            for word, value in zip(left, [*left[1:], ""], strict=False):
                assert not word.startswith("--") or word.partition("=")[0] in known, line
                assert word != "--set" or value.partition("=")[0] in setting_fields(), line


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_a_page_lead_somewhere(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("http", "generated/", "../generated/")):
            assert ((DOCS / page).parent / target).exists(), target


def test_every_page_is_in_a_table_of_contents():
    listed = "".join(
        "".join(re.findall(r"(?ms)^```\{toctree\}\n(.*?)^```$", path.read_text(encoding="utf-8")))
        for path in DOCS.rglob("*.md")
    )
    for page in PAGES:
        assert page == "index.md" or page.removesuffix(".md") in listed, page
