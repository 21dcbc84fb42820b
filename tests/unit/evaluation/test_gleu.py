"""GLEU against nltk, and against counts by hand."""

import random

import pytest
from nltk.translate import gleu_score

from heedful.evaluation.gleu import sentence_gleu


def drawn_pairs(count):
    """Texts of few words, so that n-grams are shared and repeated; some are short or empty."""
    chance = random.Random(1)
    return [
        tuple([chance.choice("abcde") for _ in range(chance.randint(0, 12))] for _ in range(2))
        for _ in range(count)
    ]


def test_sentences_score_as_by_nltk():
    for hypothesis, reference in drawn_pairs(2000):
        expected = gleu_score.sentence_gleu([reference], hypothesis)
        assert abs(sentence_gleu(hypothesis, reference) - expected) < 1e-12


@pytest.mark.parametrize(
    ("hypothesis", "reference", "shared", "larger"),
    [
        ("a b c d", "a b c d", 10, 10),
        # words the, cat, sat and no longer n-gram; 5 words have 5 + 4 + 3 + 2 n-grams
        ("the cat sat", "the big cat has sat", 3, 14),
        ("the the the", "the cat", 1, 6),  # each word counts as often as the other text has it
        ("a", "", 0, 1),
        ("", "", 0, 0),
    ],
)
def test_counts_are_those_by_hand(hypothesis, reference, shared, larger):
    one, other = hypothesis.split(), reference.split()
    expected = shared / larger if larger else 0.0
    assert sentence_gleu(one, other) == sentence_gleu(other, one) == expected
