"""Trees as symbols, and back."""

import pytest

from heedful.errors import TextError
from heedful.tasks.parsing.trees.linearize import (
    SymbolLabels,
    check_labels,
    delinearize,
    linearize,
    symbols_f1,
)
from heedful.tasks.parsing.trees.read import DEEPEST, parse_trees
from heedful.tasks.parsing.trees.tree import Tree

DOG = "(S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))"
WORDS = ("John", "has", "a", "dog", ".")


def read(text):
    (tree,) = parse_trees([text], "text")
    return tree


@pytest.mark.parametrize(
    ("form", "written"),
    [
        ("vinyals", "(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX )S"),
        ("t2t", "S NP NNP /NP VP VBZ NP DT NN /NP /VP . /S"),
    ],
)
def test_a_tree_is_written_and_read_again(form, written):
    tree = read(DOG)
    symbols = linearize(tree, form)
    assert " ".join(symbols) == written
    assert len(symbols) == 5 + 2 * 4  # n words and k phrases give n + 2k symbols
    assert delinearize(symbols, WORDS, form, tree.tags) == tree


def test_words_without_tags_are_marked():
    tree = delinearize(["(S", "XX", ")S"], ("dog",), "vinyals")
    assert str(tree) == "(S (XX dog))"


@pytest.mark.parametrize(
    "symbols",
    [
        "(S XX )S",  # a word is missing
        "(S XX XX XX )S",  # one too many
        "(S XX XX",  # not closed
        "(S XX XX )S )S",
        "(S XX XX )NP )S (NP",  # another label
        "(S (NP )NP XX XX )S",  # nothing in it
        "XX XX",  # two trees
        "(S XX )S XX",
        "",
    ],
)
def test_what_is_no_tree_of_the_words_is_none(symbols):
    assert delinearize(symbols.split(), ("a", "b"), "vinyals") is None


def test_what_is_nested_too_deeply_to_be_read_again_is_no_tree():
    def nested(depth):
        symbols = ["(X"] * depth + ["XX"] + [")X"] * depth
        return delinearize(symbols, ("a",), "vinyals")

    assert read(str(nested(DEEPEST))) == nested(DEEPEST)
    assert nested(DEEPEST + 1) is None


def test_labels_of_a_vocabulary_tell_phrases_from_tags():
    symbols = ["S", "NP", "NN", "/S"]
    assert delinearize(symbols, ("a", "b"), "t2t") is not None
    labels = SymbolLabels(["S", "/S", "NP", "/NP", "NN"], "t2t")
    assert delinearize(symbols, ("a", "b"), "t2t", labels=labels) is None


def test_a_tag_called_like_a_phrase_is_refused_in_the_form_without_brackets():
    trees = [read("(S (S a))")]
    check_labels(trees, "vinyals")
    with pytest.raises(TextError, match="has “S”; set"):
        check_labels(trees, "t2t")
    # “/NP” would open this phrase, and close an NP
    with pytest.raises(TextError, match="has “/NP”; set"):
        check_labels([read("(S (/NP (NN a)) (NP (NN b)))")], "t2t")


def test_a_tag_that_ends_like_a_number_is_refused_in_the_form_of_tags():
    trees = [Tree("S", (Tree("NN#1", word="a"), Tree("#", word="#")))]
    check_labels(trees, "vinyals")
    with pytest.raises(TextError, match="“NN#1”"):
        check_labels(trees, "t2t")


def test_labels_that_are_lost_between_spaces_are_refused():
    unlabeled = [read("(S ((NN a)) (VB b))")]
    check_labels(unlabeled, "vinyals")
    with pytest.raises(TextError, match="has “”; set"):
        check_labels(unlabeled, "t2t")
    for form in ("vinyals", "t2t"):
        with pytest.raises(TextError, match=r"has 'N\\u2009P'; rename it"):
            check_labels([read("(S (N\u2009P (NN a)))")], form)


def test_f1_of_symbols_counts_phrases():
    # P = R = 3/4, as by hand
    gold = "(S (NP XX )NP (VP XX (NP XX XX )NP )VP )S"
    found = "(S (NP XX )NP (VP XX )VP (NP XX XX )NP )S"
    assert symbols_f1([found], [gold], "vinyals") == 75
    assert symbols_f1([gold, "(S XX"], [gold, "(S XX )S"], "vinyals") == pytest.approx(800 / 9)


@pytest.mark.parametrize(
    ("form", "written"),
    [
        ("vinyals", "(S (NP XX#0 )NP (VP XX#1 (NP XX#2 XX#0 )NP )VP XX#1 )S"),
        ("t2t", "S NP NNP#0 /NP VP VBZ#1 NP DT#2 NN#0 /NP /VP .#1 /S"),
    ],
)
def test_words_may_be_numbered(form, written):
    tree = read(DOG)
    symbols = linearize(tree, form, numbers=3)
    assert " ".join(symbols) == written
    assert delinearize(symbols, WORDS, form, tree.tags) == tree
    if form == "t2t":
        assert delinearize(symbols, WORDS, form) == tree
