"""GLEU against nltk, and against counts by hand."""

import random

import pytest
from nltk.translate import gleu_score

from heedful.evaluation.gleu import GleuCounts, corpus_gleu, gleu_counts, sentence_gleu


def drawn_pairs(count):
    """Texts of few words, so that n-grams are shared and repeated; some are short or empty."""
    chance = random.Random(1)
    return [
        tuple([chance.choice("abcde") for _ in range(chance.randint(0, 12))] for _ in range(2))
        for _ in range(count)
    ]


def test_sentences_and_a_text_score_as_by_nltk():
    pairs = drawn_pairs(2000)
    for hypothesis, reference in pairs:
        expected = gleu_score.sentence_gleu([reference], hypothesis)
        assert abs(sentence_gleu(hypothesis, reference) - expected) < 1e-12
    expected = gleu_score.corpus_gleu(
        [[reference] for _, reference in pairs], [h for h, _ in pairs]
    )
    assert abs(corpus_gleu(gleu_counts(*pair) for pair in pairs) - expected) < 1e-12


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
    assert gleu_counts(one, other) == gleu_counts(other, one) == GleuCounts(shared, larger)
    assert sentence_gleu(one, other) == (shared / larger if larger else 0.0)
