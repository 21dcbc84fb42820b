"""Words below tags, and classes of words."""

import numpy as np
import pytest

from heedful.paper.parsing.lexicon import TagLexicon, word_class

pytestmark = pytest.mark.task("parsing")

TAGGED = [
    [("The", "DT"), ("dogs", "NNS"), ("bark", "VBP")],
    [("the", "DT"), ("dogs", "NNS"), ("walk", "VBP"), ("the", "DT"), ("walk", "NN")],
    [("the", "DT"), ("cats", "NNS"), ("sing", "VBP")],
]
TAGS = ("DT", "NN", "NNS", "VBP")


def _found(lexicon, words):
    return np.exp(lexicon.log_probabilities(words.split()))


def test_known_words_have_relative_frequencies():
    found = _found(TagLexicon(TAGGED, TAGS), "the dogs walk")
    assert found == pytest.approx(np.array([[3 / 4, 0, 0, 0], [0, 0, 2 / 3, 0], [0, 1, 0, 1 / 3]]))


def test_each_tag_gives_its_words_and_classes_1_in_all():
    lexicon = TagLexicon(TAGGED, TAGS)
    # “The” is in a class, “cats” in one, “sing” and “bark” in a third
    total = _found(lexicon, "The the dogs walk cats sing").sum(axis=0)
    assert total == pytest.approx([1, 1, 1, 1])


def test_rare_and_unknown_words_are_looked_up_by_their_class():
    lexicon = TagLexicon(TAGGED, TAGS)
    unknown = _found(lexicon, "The birds cats")
    assert unknown[1].tolist() == unknown[2].tolist() == pytest.approx([0, 0, 1 / 3, 0])


def test_a_class_that_is_not_in_training_gets_wider():
    lexicon = TagLexicon(TAGGED, TAGS)
    # lower-cased and “-ly” is not there: all lower-cased rare words stand in
    slowly = _found(lexicon, "The slowly")[1]
    assert slowly.tolist() == pytest.approx([0, 0, 1 / 3, 2 / 3])
    # no rare word has digits: all rare words stand in
    number = _found(lexicon, "The 1990")[1]
    assert number.tolist() == pytest.approx([1 / 4, 0, 1 / 3, 2 / 3])


def test_without_rare_words_unknown_ones_have_no_tag():
    lexicon = TagLexicon(TAGGED, TAGS, rare=0)
    assert _found(lexicon, "sing birds") == pytest.approx(
        np.array([[0, 0, 0, 1 / 3], [0, 0, 0, 0]])
    )
    assert lexicon.likeliest(["sing", "birds"]) == ("VBP", "DT")


def test_the_likeliest_tag_is_the_one_seen_most_with_the_word():
    sentences = [[("run", "NN")], *[[("run", "VB")]] * 2, *[[("eat", "VB")]] * 9]
    lexicon = TagLexicon(sentences, ("NN", "VB"))
    # below NN every word is “run”, but two of three “run” are VB
    assert lexicon.likeliest(["run"]) == ("VB",)


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("dog", ("lower",)),
        ("classes", ("lower", "s")),
        ("glass", ("lower",)),
        ("virus", ("lower",)),
        ("nation", ("lower", "ion")),
        ("mid-1990s", ("lower", "digit", "hyphen", "s")),
        ("eBay", ("capital",)),
        ("U.S.", ("capitals",)),
        ("A", ("capital",)),
        ("3.14", ("", "digit")),
        ("%", ("",)),
        ("日本", ("",)),
    ],
)
def test_classes_of_words(word, parts):
    assert word_class(word) == parts


def test_the_first_word_is_a_class_of_its_own():
    assert word_class("Walking", is_first=True) == ("first", "ing")
    assert word_class("Walking", is_first=True, is_known=True) == ("known", "ing")
    assert word_class("walking", is_first=True) == ("lower", "ing")
