"""Constituency trees."""

from heedful.tasks.parsing.trees.read import parse_line
from heedful.tasks.parsing.trees.tree import (
    Tree,
    escape_brackets,
    flat_tree,
    unescape_brackets,
)

DOG = "(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))"


def read(text: str) -> Tree:
    tree = parse_line(text, "text")
    assert tree is not None
    return tree


def test_a_tree_is_written_as_it_was_read():
    assert str(read(DOG)) == DOG


def test_words_tags_and_phrases():
    tree = read(DOG)
    assert tree.words == ("the", "dog", "sleeps")
    assert tree.tags == ("DT", "NN", "VBZ")
    assert tree.phrases() == [("S", 0, 3), ("NP", 0, 2), ("VP", 2, 3)]


def test_a_flat_tree_has_one_phrase():
    assert str(flat_tree(("a", "b"), ("X", "Y"))) == "(S (X a) (Y b))"


def test_round_brackets_in_words_are_escaped_and_come_back():
    for letter in "()[]{}":
        assert unescape_brackets(escape_brackets(letter)) == letter
    assert escape_brackets("[") == "["  # as in the CRAFT treebank
    assert unescape_brackets("-LCB-") == "{"
    assert escape_brackets("f(x)") == "f-LRB-x-RRB-"
