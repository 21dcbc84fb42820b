"""`heedful parse`: a parser from a file of trees, its trees, and their score."""

import json

import pytest

from tests.support.terminals import outputs

pytestmark = pytest.mark.task("parsing")

TREES = """( (S (NP-SBJ (DT the) (NN dog)) (VP (VBZ sleeps) (NP (-NONE- *)))) )
(S (NP (PRP she)) (VP (VBZ reads) (NP (DT a) (NN book))))
(S (NP (DT a) (NN cat)) (VP (VBZ eats) (PP (IN in) (NP (DT the) (NN house)))))
"""
SETTINGS = (
    *("model.d_model=16", "model.d_ff=32", "model.heads=2", "train.steps=4", "train.warmup=10"),
    *("data.subwords=character", "parsing.word_numbers=4"),
)


@pytest.fixture(scope="module")
def trained(heedful_cli, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parser")
    (folder / "trees").write_text(TREES, encoding="utf-8")
    chosen = [part for setting in SETTINGS for part in ("--set", setting)]
    files = ("--trees", folder / "trees", "--valid-trees", folder / "trees")
    done = heedful_cli(
        "parse", "train", "tiny", *files, "--out", folder / "run", *chosen, "--precision", "fp32"
    )
    assert done.returncode == 0, done.stderr
    assert "3 trees with 13 words; 1 empty node left out" in done.stderr
    assert "F1" in done.stderr
    return folder


def test_words_go_in_and_trees_come_out(heedful_cli, trained):
    done = heedful_cli(
        *("parse", "predict", trained / "run", "--beam", 2, "--scores", "--input", "-"),
        stdin="the cat (\n\u2009 \nshe\n",
    )
    assert done.returncode == 0, done.stderr
    first, empty, last = done.stdout.splitlines()
    assert first.startswith("-")
    assert "\t(" in first
    assert [word in first for word in ("(XX the)", "(XX cat)", "(XX -LRB-)")] == [True] * 3
    assert empty == ""
    assert "(XX she)" in last


def test_empty_lines_count_in_the_numbers_of_messages(heedful_cli, trained):
    lines = ["", "she", "", "", "dog " * 1400]
    done = heedful_cli("parse", "predict", trained / "run", stdin="\n".join(lines))
    assert done.returncode == 0, done.stderr
    assert [bool(line) for line in done.stdout.splitlines()] == [False, True, False, False, True]
    assert "line 5 has 1,400 words, too many for a tree" in done.stderr


def test_trees_are_utf8_whatever_the_terminal_is(trained, tmp_path):
    words, predicted = tmp_path / "words", trained / "run"
    words.write_text("the été 狗\n", encoding="utf-8")
    commands = [
        ("parse", "draw", trained / "trees"),
        ("parse", "predict", predicted, "--input", words),
    ]
    (drawn, trees), _ = outputs(commands, PYTHONIOENCODING="ascii")
    assert b"|- NP" in drawn and b"`- VP" in drawn
    assert "(XX été)" in trees.decode("utf-8") and "(XX 狗)" in trees.decode("utf-8")


def test_predicted_trees_are_scored(heedful_cli, trained):
    out = trained / "predicted"
    done = heedful_cli(
        *("parse", "predict", trained / "run", "--trees", trained / "trees"),
        *("--output", out, "--count-malformed"),
    )
    assert done.returncode == 0, done.stderr
    assert "of 3 outputs" in done.stderr
    assert "are malformed: not trees over the sentence's words" in done.stderr
    assert "(DT the) (NN dog)" in out.read_text(encoding="utf-8")
    files = ("--gold", trained / "trees", "--predicted", out)
    done = heedful_cli("parse", "evaluate", *files, "--confidence")
    assert done.returncode == 0, done.stderr
    assert "unparsed               0           0" in done.stdout
    assert "EVALB itself: F1" in done.stdout
    table = heedful_cli("parse", "evaluate", *files, "--evalb").stdout
    assert "Number of Valid sentence  =      3" in table


def test_another_parser_is_compared_and_evalbs_table_is_its_own(heedful_cli, corpora, tmp_path):
    folder = corpora / "fixtures-evalb"
    gold, test, rules = (folder / f"sample.{end}" for end in ("gld", "tst", "prm"))
    done = heedful_cli(
        *("parse", "evaluate", "--gold", gold, "--predicted", gold, "--against", gold),
        *("--parameters", rules, "--trials", 200, "--json"),
    )
    found = json.loads(done.stdout)
    assert found["all"]["f1"] == found["up_to_40"]["f1"] == found["evalb"]["f1"] == 100
    assert (found["against"][0]["difference"], found["against"][0]["p_value"]) == (0, 1)
    files = ("--gold", gold, "--predicted", test, "--parameters", rules)
    done = heedful_cli("parse", "evaluate", *files, "--evalb")
    assert done.stdout == (folder / "sample.evalb2006.out").read_text(encoding="utf-8")
    assert "5 of 24 sentences are error sentences; the first is sentence 12" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("train", "tiny", "--trees", "none", "--out", "x"), "none must exist"),
        (("train", "tiny", "--out", "x"), "--trees is needed"),
        (("train", "tiny", "--trees", "bad"), "--out is needed"),
        (("train", "tiny", "--trees", "bad", "--out", "x"), "bad, line 2, column 1: every bracket"),
        (("predict", "run", "--trees", "bad"), "bad, line 2, column 1"),
        (("predict", "run", "--trees", "trees", "--output", "trees"), "same file as --trees"),
        (("predict", "run", "--input", "two", "--output", "none/x"), "none does not exist"),
        (("predict", "run", "--trees", "bad", "--input", "bad"), "both name sentences; give one"),
        (("evaluate", "--gold", "trees", "--predicted", "two"), "have a line for each of the 3"),
        (("evaluate", "--gold", "trees", "--predicted", "none"), "none must be a text file"),
        (("evaluate", "--gold", "trees", "--predicted", "bad"), "bad, line 2, column 1: every"),
        (("evaluate", "--gold", "trees", "--predicted", "other"), "but none has: line 1 of other"),
        (
            ("evaluate", "--gold", "trees", "--predicted", "trees", "--evalb", "--json"),
            "--evalb prints a table and nothing else",
        ),
        (
            ("evaluate", "--gold", "trees", "--predicted", "trees", "--parameters", "bad"),
            "bad, line 1: the first word must be a parameter",
        ),
    ],
)
def test_bad_input_ends_in_one_paragraph(heedful_cli, trained, arguments, reason):
    (trained / "bad").write_text("(S (NN a))\n(S (NN b)\n", encoding="utf-8")
    (trained / "other").write_text("(S (NN a))\n" * 3, encoding="utf-8")
    (trained / "two").write_text("(S (NN a))\n(S (NN b))\n", encoding="utf-8")
    done = heedful_cli("parse", *arguments, cwd=trained)
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
