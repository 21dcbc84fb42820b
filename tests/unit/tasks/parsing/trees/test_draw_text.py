"""Trees in the terminal."""

import random

import pytest

from heedful.tasks.parsing.trees.differences import differing_phrases
from heedful.tasks.parsing.trees.draw_text import (
    columns,
    cut,
    draw_pair,
    draw_tree,
    escape_unprintable,
)
from heedful.tasks.parsing.trees.tree import Tree
from tests.support.random_trees import FLAT, GOLD, changed_tree, random_tree, read_tree


def drawn_pair(gold, predicted, width=80, **settings):
    return draw_pair(gold, predicted, differing_phrases(gold, predicted), width, **settings)


def test_a_tree_is_indented():
    assert (
        "\n".join(draw_tree(GOLD))
        == """\
S
├─ NP  PRP she
├─ VP  VBD saw
│  └─ NP
│     ├─ NP  DT the  NN dog
│     └─ PP  IN with
│        └─ NP  PRP us
└─ . ."""
    )


def test_what_does_not_fit_is_drawn_narrower():
    assert (
        "\n".join(draw_tree(GOLD, 17))
        == """\
S
├ NP  PRP she
├ VP  VBD saw
│ └ NP
│   ├ NP  DT the
│   │ └ NN dog
│   └ PP  IN with
│     └ NP
│       └ PRP us
└ . ."""
    )
    assert draw_tree(read_tree("(NP (NN Donaudampfschiff))"), 10) == ["NP", "└NN Donau…"]
    deep = read_tree("(X " * 150 + "(Y z)" + ")" * 150)
    assert all(columns(line) <= 40 for line in draw_tree(deep, 40))


def test_a_pair_stands_beside_each_other_with_signs():
    assert (
        "\n".join(drawn_pair(GOLD, FLAT))
        == """\
gold: 1 of 7 phrases missed (-)   predicted: all 6 phrases right
  S                                 S
  ├─ NP  PRP she                    ├─ NP  PRP she
  ├─ VP  VBD saw                    ├─ VP  VBD saw
- │  └─ NP                          │  ├─ NP  DT the  NN dog
  │     ├─ NP  DT the  NN dog       │  └─ PP  IN with
  │     └─ PP  IN with              │     └─ NP  PRP us
  │        └─ NP  PRP us            └─ . .
  └─ . ."""
    )


def test_a_pair_that_does_not_fit_stands_below_each_other():
    lines = drawn_pair(FLAT, GOLD, 60)
    assert [line for line in lines if line[0] not in " "] == [
        "gold: all 6 phrases found",
        "predicted: 1 of 7 phrases wrong (+)",
        "+ │  └─ NP",
    ]
    assert len(lines) == 2 + len(draw_tree(GOLD)) + len(draw_tree(FLAT))


def test_without_a_predicted_tree_the_gold_one_is_drawn():
    lines = drawn_pair(GOLD, None, 80)
    assert lines[0] == "gold: 7 of 7 phrases missed (-)   predicted: no tree"
    assert [line[0] for line in lines[1:]] == ["-"] * 7 + [" "]
    assert drawn_pair(GOLD, None, 50)[-1] == "predicted: no tree"


def test_colors_only_repeat_the_signs():
    lines = drawn_pair(
        GOLD, read_tree("(S (X (PRP she)) (VBD saw) (DT the) (NN dog) (IN with) (PRP us) (. .))")
    )
    assert not any("\x1b" in line for line in lines)
    colored = drawn_pair(
        GOLD,
        read_tree("(S (X (PRP she)) (VBD saw) (DT the) (NN dog) (IN with) (PRP us) (. .))"),
        60,
        color=True,
    )
    marked = [line for line in colored if line.startswith("\x1b")]
    assert [line[:7] for line in marked] == ["\x1b[36m- "] * 6 + ["\x1b[33m+ "]
    assert all(line.endswith("\x1b[0m") for line in marked)


def test_hostile_text_reaches_no_terminal():
    tree = read_tree("(S\x1b[31m (NN a\x07b) (-LRB- -LRB-) (NN \u202edog) (NN می\u200cخواهم))")
    (line,) = draw_tree(tree)
    assert line == "S\\x1b[31m  NN a\\x07b  -LRB- (  NN \\u202edog  NN می\u200cخواهم"
    assert escape_unprintable("\n\ud800") == "\\n\\ud800"


def test_columns_are_those_of_a_terminal():
    assert [columns(text) for text in ("abc", "日本", "e\u0301", "ที่", "")] == [3, 4, 1, 1, 0]
    assert (cut("日本語", 5), cut("日本語", 6), cut("abc", 2)) == ("日本…", "日本語", "a…")


@pytest.mark.parametrize("seed", range(20))
def test_every_word_is_drawn_once_and_in_order(seed):
    source = random.Random(seed)
    words = [f"w{number}" for number in range(source.randint(1, 40))]
    gold = random_tree(source, words)
    predicted = changed_tree(source, gold)
    for width in (60, 100, 300):
        lines = draw_tree(gold, width)
        assert all(columns(line) <= width for line in lines)
        found = [part for line in lines for part in line.split() if part[0] == "w"]
        if not any("…" in line for line in lines):
            assert found == words
        difference = differing_phrases(gold, predicted)
        pair = draw_pair(gold, predicted, difference, width)
        assert all(columns(line) <= width for line in pair)
        assert sum(line.startswith("- ") for line in pair) == len(difference.missed)


def test_equal_children_have_their_own_branches():
    leaf = Tree("NP", (Tree("NN", word="a"),))
    assert draw_tree(Tree("S", (leaf, leaf))) == ["S", "├─ NP  NN a", "└─ NP  NN a"]
