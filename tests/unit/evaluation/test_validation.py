import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.evaluation.bleu import evaluate_texts
from heedful.evaluation.validation import (
    ValidationScorer,
    character_error_rate,
    edit_distance,
    exact_match,
)

ALL = ("bleu", "chrf", "exact_match", "cer")
words = st.text("abcd", max_size=9)


@given(words, words)
def test_edits_are_those_of_the_table(text, reference):
    row = list(range(len(reference) + 1))
    for i, mine in enumerate(text, start=1):
        previous, row = row, [i]
        for j, other in enumerate(reference, start=1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (mine != other)))
    assert edit_distance(text, reference) == row[-1]


def test_errors_are_counted_for_each_character_of_the_references():
    assert character_error_rate(["kitten", "ab"], ["sitting", "abc"]) == pytest.approx(40)
    assert character_error_rate([""], [""]) == 0


def test_lines_that_are_their_reference_are_counted():
    assert exact_match(["a b ", "c"], ["a b", "d"]) == 50


def test_bleu_and_chrf_are_those_of_the_evaluation():
    texts, references = ["私は犬が好きです。"], ["私は赤い犬が好きです。"]
    found = ValidationScorer(references, "ja", ALL)(texts)
    scores = evaluate_texts(texts, [references], language="ja")
    assert found["bleu"] == scores.bleu.score
    assert found["bleu_signature"] == scores.bleu.signature
    assert found["chrf"] == scores.chrf.score
    # what no file's ending tells, the script does
    assert ValidationScorer(references, "tgt", ALL)(texts) == found
