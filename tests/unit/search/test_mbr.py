"""Minimum Bayes risk against a plain loop, and its measures against sacreBLEU."""

import gzip
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from heedful.errors import SettingError
from heedful.evaluation.mbr_utility import UTILITIES, bleu_table, chrf_table, utility
from heedful.search.mbr import minimum_bayes_risk, pairwise
from heedful.translation.mbr import least_risk
from heedful.translation.result import Translation

WORDS = ["a", "b", "c", "ab", "abc", "cat", "cats,", "dog", ".", "Zoë", "☃"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
SENTENCE = {
    "chrf": lambda one, other: CHRF().sentence_score(one, [other]).score,
    "bleu": lambda one, other: BLEU(effective_order=True).sentence_score(one, [other]).score,
}


@settings(max_examples=25)
@given(st.lists(TEXTS, min_size=1, max_size=5), st.lists(TEXTS, min_size=1, max_size=5))
@pytest.mark.parametrize("name", UTILITIES)
def test_tables_hold_sacrebleus_sentence_scores(name, translations, references):
    table = utility(name)(translations, references)
    assert table.shape == (len(translations), len(references))
    for i, one in enumerate(translations):
        for j, other in enumerate(references):
            assert table[i, j] == pytest.approx(SENTENCE[name](one, other), abs=1e-9)


def test_tables_of_real_sentences(corpora):
    file = corpora / "multi30k" / "raw" / "test_2016_flickr.de.gz"
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        texts = [next(lines).rstrip("\n") for _ in range(12)]
    for table, name in ((chrf_table, "chrf"), (bleu_table, "bleu")):
        expected = pairwise(SENTENCE[name])(texts, texts)
        assert table(texts, texts) == pytest.approx(expected, abs=1e-9)


def test_a_large_table_is_computed_in_parts(monkeypatch):
    texts = [" ".join(f"{word}{number % 7}" for word in "abcdefgh") for number in range(15)]
    whole = chrf_table(texts, texts[:4])
    monkeypatch.setattr("heedful.evaluation.mbr_utility._CHUNK", 50)
    assert chrf_table(texts, texts[:4]) == pytest.approx(whole, abs=1e-9)


def overlap(one, other):
    """Count shared letters."""
    return len(set(one) & set(other)) - 0.1 * len(one)


def slow_risk(candidates, weights, references):
    """Add up utilities one by one."""
    total = sum(weights)
    expected = []
    for number, candidate in enumerate(candidates):
        value = 0.0
        for weight, reference in zip(weights, references, strict=True):
            value += weight / total * overlap(candidate, reference)
        expected.append((number, value))
    return sorted(expected, key=lambda item: -item[1])


@settings(max_examples=40)
@given(st.lists(st.text("abcd", max_size=4), min_size=1, max_size=8), st.data())
def test_the_order_is_that_of_a_plain_loop(candidates, data):
    weigh = st.lists(
        st.sampled_from([0.0, 1.0, 2.5]), min_size=len(candidates), max_size=len(candidates)
    )
    weights = data.draw(st.one_of(st.none(), weigh.filter(any)))
    found = minimum_bayes_risk(candidates, pairwise(overlap), weights)
    expected = slow_risk(candidates, weights or [1.0] * len(candidates), candidates)
    assert [value for _, value in found] == pytest.approx([value for _, value in expected])
    assert sorted(number for number, _ in found) == list(range(len(candidates)))
    values = dict(expected)
    for number, value in found:
        assert value == pytest.approx(values[number])


def test_references_may_be_others_than_the_candidates():
    found = minimum_bayes_risk(["ab", "cd"], pairwise(overlap), references=["c", "d", "a"])
    assert found == [(1, pytest.approx(2 / 3 - 0.2)), (0, pytest.approx(1 / 3 - 0.2))]


def test_a_text_that_was_sampled_often_wins_and_is_compared_once():
    asked = []

    def exact(one, other):
        asked.append((one, other))
        return float(one == other)

    samples = ["b", "a", "c", "a"]
    found = minimum_bayes_risk(samples, pairwise(exact))
    assert found == [(1, 0.5), (3, 0.5), (0, 0.25), (2, 0.25)]
    assert len(asked) == 9


@pytest.mark.parametrize("weights", [[1.0], [0.0, 0.0], [1.0, -1.0], [1.0, math.nan]])
def test_weights_that_make_no_distribution_are_refused(weights):
    with pytest.raises(ValueError, match="weight"):
        minimum_bayes_risk(["a", "b"], pairwise(overlap), weights)


def test_translations_are_chosen_by_risk():
    texts = ["le chien dort", "un oiseau vole", "le chien dort bien", "le chat dort"]
    first, *others = [Translation(text, -1.0, (), -1.0) for text in texts]
    ordered = least_risk(replace(first, alternatives=tuple(others)), 4)
    scores = [choice.score for choice in (ordered, *ordered.alternatives)]
    assert ordered.text == texts[2]
    assert ordered.alternatives[-1].text == texts[1]
    assert scores == sorted(scores, reverse=True)


def test_an_unknown_utility_is_refused():
    with pytest.raises(SettingError, match="chrf or bleu, but is 'ter'"):
        utility("ter")
