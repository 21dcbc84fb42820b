"""What the README shows is run as it stands, with a shorter training."""

import re
import shlex

import pytest
from tests.support import readme
from tests.support.commands import run_shell
from tests.support.pages import ROOT, blocks, shortened
from tests.support.readme import TEXT, is_like, shown_commands

MOST_LINES, MOST_WORDS = 90, 1000


def test_the_readme_is_short():
    assert len(TEXT.splitlines()) <= MOST_LINES
    assert len(TEXT.split()) <= MOST_WORDS


def test_the_commands_and_the_python_of_the_readme_work(zygote, tmp_path):
    with_output = 0
    for command, lines in shown_commands():
        printed = run_shell(zygote, shortened(command), tmp_path)
        if (
            "heedful translate" in command and lines
        ):  # what has learned so little says what it likes
            assert len(printed.splitlines()) == len(lines)
        elif lines:
            assert is_like(printed, lines, numbers_within=None), printed
        with_output += bool(lines)
    assert with_output == 2
    assert (tmp_path / "attention.html").is_file()
    (code,) = [text for language, text in blocks(readme.PATH) if language == "python"]
    printed = run_shell(zygote, f"heedful -c {shlex.quote(code)}", tmp_path)  # see fork_server.py
    assert re.search(r"\(2, 4, \d+, \d+\)$", printed.strip())


def test_an_output_is_compared_word_for_word_and_number_for_number():
    shown = ("BLEU   99.61", "chrF   99.84", "…")
    assert is_like("BLEU   99.2\nchrF   99.9\nTER 3\n", shown, numbers_within=1.0)
    assert not is_like("BLEU   95.2\nchrF   99.9\nTER 3\n", shown, numbers_within=1.0)
    assert is_like("BLEU   5.2\nchrF   9.9\n", shown, numbers_within=None)
    assert not is_like("chrF   99.84\nBLEU   99.61\n", shown, numbers_within=1.0)
    assert not is_like("BLEU   99.61\n", shown, numbers_within=1.0)
    assert not is_like("le gros chat rouge\n", ("le gros chien rouge",), numbers_within=1.0)


def test_every_link_and_picture_of_the_readme_is_there():
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", TEXT)
    assert len(targets) > 20
    for target in targets:
        assert target.startswith("http") or (ROOT / target).exists(), target


def test_make_has_the_two_targets():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("quickstart", "test"):
        assert f"make {target}" in TEXT
        assert re.search(rf"(?m)^{target}:", makefile)


@pytest.mark.parametrize("page", ["README.md", "docs/howto/install.md"])
def test_the_tested_versions_are_those_of_the_constraints(page):
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    (torch,) = re.findall(r"(?m)^torch==(\S+)", pinned)
    assert f"The tests run with torch {torch.partition('+')[0]} and Python 3.11" in (
        ROOT / page
    ).read_text(encoding="utf-8")
