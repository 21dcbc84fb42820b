"""`heedful parse draw`: trees in the terminal and as pictures, with what differs."""

import re
from xml.etree import ElementTree

import pytest

pytestmark = pytest.mark.task("parsing")

GOLD = """\
(S (NP (PRP she)) (VP (VBD saw) (NP (NP (DT the) (NN dog)) (PP (IN with) (NP (PRP us))))) (. .))
(S (NP-SBJ (DT the) (NN dog)) (VP (VBZ sleeps) (NP (-NONE- *))))
(S (NP (PRP <script>)) (VP (VBZ naïve&co)))
"""
PREDICTED = """\
(S (NP (PRP she)) (VP (VBD saw) (NP (DT the) (NN dog)) (PP (IN with) (ADVP (PRP us)))) (. .))
(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))

"""


@pytest.fixture
def files(tmp_path):
    gold, predicted = tmp_path / "gold.mrg", tmp_path / "predicted.trees"
    gold.write_text(GOLD, encoding="utf-8")
    predicted.write_text(PREDICTED, encoding="utf-8")
    return gold, predicted


def test_differing_phrases_are_marked(heedful_cli, files):
    done = heedful_cli("parse", "draw", files[0], "--predicted", files[1], "--line", 1)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "1, F1 76.9: she saw the dog with us ."
    assert "gold: 2 of 7 phrases missed (-)" in lines[1]
    assert "predicted: 1 of 6 phrases wrong (+)" in lines[1]
    assert [line.split()[-3:] for line in lines if "+" in line[20:]][-1] == ["ADVP", "PRP", "us"]
    assert sum(line.startswith("-") for line in lines) == 2


def test_trees_without_a_difference_are_left_out(heedful_cli, files):
    done = heedful_cli("parse", "draw", files[0], "--predicted", files[1], "--different")
    assert [line[:7] for line in done.stdout.splitlines() if ", F1 " in line] == [
        *("1, F1 7", "3, F1 0")
    ]
    assert "predicted: no tree" in done.stdout
    same = heedful_cli("parse", "draw", files[0], "--predicted", files[0], "--different")
    assert (same.stdout, same.stderr.strip()) == ("", "no phrase differs")


def test_traces_and_function_tags_are_drawn_when_asked_for(heedful_cli, files):
    plain = heedful_cli("parse", "draw", files[0], "--line", 2).stdout
    full = heedful_cli("parse", "draw", files[0], "--line", 2, "--traces").stdout
    assert ("NP-SBJ" in full, "-NONE- *" in full) == (True, True)
    assert ("NP-SBJ" in plain, "-NONE-" in plain) == (False, False)


def test_a_picture_holds_what_was_written_as_text(heedful_cli, files, tmp_path):
    picture = tmp_path / "tree.svg"
    done = heedful_cli("parse", "draw", files[0], "--line", 3, "--output", picture)
    assert done.returncode == 0, done.stderr
    root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"<script>", "naïve&co", "NP", "S"} <= set(texts)
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))


def test_text_goes_to_a_file(heedful_cli, files, tmp_path):
    text = tmp_path / "trees.txt"
    assert heedful_cli("parse", "draw", files[0], "--output", text).returncode == 0
    assert text.read_text(encoding="utf-8").splitlines()[0].startswith("1: she saw")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--line", "9"], "must be a line of .*gold.mrg with a tree, at most 3, but is 9"),
        (["--different"], "compares trees; give --predicted too"),
        (
            ["--output", "x.svg"],
            "must choose one tree of .*gold.mrg, because .* one, but 3",
        ),
        (["--output", "x.png"], "--output must end in .svg"),
        (["--line", "1", "--output", "none/x.svg"], "none does not exist"),
        (["--line", "1", "--output", "gold.mrg"], "must not be the same file as FILE"),
        (["--predicted", "missing"], "missing must be a text file that can be read"),
        (["--predicted", "-", "--traces"], "predicted trees have no traces"),
    ],
)
def test_what_cannot_be_drawn_is_refused(heedful_cli, files, arguments, reason):
    done = heedful_cli("parse", "draw", files[0], *arguments, cwd=files[0].parent)
    assert done.returncode != 0
    assert done.stdout == ""
    assert re.search(reason, done.stderr.replace("\n", " ")), done.stderr


def test_a_broken_tree_is_named_by_its_place(heedful_cli):
    done = heedful_cli("parse", "draw", "-", stdin="(S (NP (A b)))\n(S (NP (A b))\n")
    assert done.returncode != 0
    assert "the input, line 2, column 1: every bracket of this tree must be closed" in done.stderr
