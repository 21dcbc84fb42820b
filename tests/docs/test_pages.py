"""
The `sh` and `python` blocks of the tutorial and of every page that explains are executed, in order.

Of the how-to pages, and of `bash` blocks, the words are compared with the command line here;
tests/soak/test_howto.py executes the how-to pages.
"""

import re
import shlex

import pytest
import typer.main
from tests.support.pages import (
    DOCS,
    EXECUTED,
    HOWTO,
    KEPT,
    NOT_RUN,
    PAGES,
    ROOT,
    TUTORIAL,
    blocks,
    commands,
    follow,
    follow_tutorial,
    heedful_words,
)

from heedful.cli.main import app
from heedful.config.schema import setting_fields

# Programs that a reader is told to run; `fairseq-train` and the like are what he has run before.
COMMAND = re.compile(r"(?m)^\s*(?:[$#>] )?(?:heedful|pip|pipx|git|make|curl|torchrun|docker) \S")


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


@pytest.fixture(scope="module")
def program():
    """The tree of commands."""
    return typer.main.get_command(app)


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_have_words_that_exist(page, program):
    for line in commands(page, (*EXECUTED, "bash")):
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


@pytest.mark.parametrize("page", [*PAGES, "../README.md"])
def test_a_block_with_commands_is_executed_or_says_that_it_is_not(page):
    path = DOCS / page
    fences = re.findall(r"(?m)^[ >]*(?:```|~~~)", path.read_text(encoding="utf-8"))
    assert len(fences) == 2 * len(blocks(path)), "a fence that is indented is not seen by the tests"
    for language, text in blocks(path):
        if language == "bash":  # the README says it once for all its blocks
            assert text.startswith(NOT_RUN) or page == "../README.md", text
        elif language not in EXECUTED:
            assert not COMMAND.search(text), f"{page}: commands stand in sh, python or bash blocks"


def test_a_command_is_seen_wherever_it_stands():
    assert COMMAND.search("words\n$ heedful info\n")
    assert COMMAND.search("make test\n")
    assert not COMMAND.search("fairseq-train data-bin\nwhat heedful does\n")


@pytest.mark.parametrize("page", ["docs/index.md", "docs/tutorial.md", "README.md"])
def test_what_is_executed_is_stated(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    languages = " and ".join(f"`{language}`" for language in EXECUTED)
    assert f"very {languages} block" in text
    assert f"`{NOT_RUN.strip(' :')}`" in text


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
