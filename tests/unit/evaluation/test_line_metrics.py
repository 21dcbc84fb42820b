"""Both metrics beside cases that were counted by hand, and beside a plain computation."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.evaluation.line_metrics import CharacterErrorRate, ExactMatch
from heedful.evaluation.significance import Resampling, compare, confidence_intervals
from heedful.evaluation.sufficient_statistics import measure
from tests.support.edits import plain_edit_distance

line = st.text("aAb ", max_size=6)
rows = st.lists(st.tuples(line, line, line), min_size=1, max_size=6)


def score(metric, texts, *references, **options):
    return measure(metric(references, **options), texts).score


@pytest.mark.parametrize(
    ("texts", "references", "match", "errors"),
    [
        (["a b", "c"], ["a b", "d"], 50, 25),  # one of four characters
        (["kitten", "ab"], ["sitting", "abc"], 0, 40),  # 3 + 1 of 7 + 3
        (["a b ", "\tc"], [" a b", "c"], 100, 0),  # ends do not count
        (["a  b"], ["a b"], 0, 100 / 3),  # spaces inside do
        (["", "ab"], ["ab", "ab"], 50, 50),
        (["abcdef"], ["a"], 0, 500),  # more errors than characters
        (["x", "ab"], ["", "ab"], 50, 50),  # an empty reference adds edits alone
        (["", "x"], ["", ""], 50, 100),  # no character at all
        ([""], [""], 100, 0),
        (["é"], ["e\u0301"], 0, 100),  # code points: one is written as two
    ],
)
def test_cases_counted_by_hand(texts, references, match, errors):
    assert score(ExactMatch, texts, references) == match
    assert score(CharacterErrorRate, texts, references) == pytest.approx(errors)


def test_any_reference_may_match_and_the_nearest_one_counts():
    texts, first, second = ["season", "they"], ["seson", "thay"], ["season", "thaying"]
    assert score(ExactMatch, texts, first, second) == 50
    # 0 edits of (5 + 6) / 2 characters, and 1 of (4 + 7) / 2
    assert score(CharacterErrorRate, texts, first, second) == pytest.approx(100 / 11)


def test_case_counts_unless_it_is_ignored():
    assert score(ExactMatch, ["ABC"], ["abc"]) == 0
    assert score(ExactMatch, ["ABC"], ["abc"], lowercase=True) == 100
    assert score(CharacterErrorRate, ["ABc"], ["abc"]) == pytest.approx(200 / 3)
    assert score(CharacterErrorRate, ["ABc"], ["abc"], lowercase=True) == 0


@given(rows)
def test_scores_are_those_of_a_plain_computation(cases):
    texts, *references = zip(*cases, strict=True)
    stripped = [[side.strip() for side in case] for case in cases]
    matches = sum(mine in others for mine, *others in stripped)
    assert score(ExactMatch, texts, *references) == pytest.approx(100 * matches / len(cases))
    edits = sum(
        min(plain_edit_distance(mine, other) for other in others) for mine, *others in stripped
    )
    characters = sum(len(other) for _, *others in stripped for other in others) / 2
    expected = 100 * edits / characters if characters else 100 * bool(edits)
    assert score(CharacterErrorRate, texts, *references) == pytest.approx(expected)
    exact, errors = (
        score(metric, texts, *references) for metric in (ExactMatch, CharacterErrorRate)
    )
    assert (exact == 100) == (errors == 0)


def test_signatures_say_what_was_compared():
    one = measure(CharacterErrorRate([["a"], ["b"]], lowercase=True), ["a"]).signature
    assert one.startswith("nrefs:2|case:lc|ends:stripped|version:heedful-")
    assert "case:mixed" in measure(ExactMatch([["a"]]), ["a"]).signature


def test_intervals_are_those_of_a_plain_bootstrap():
    draw = random.Random(1)
    references = ["".join(draw.choices("abc", k=draw.randrange(1, 9))) for _ in range(60)]
    texts = [text if draw.random() < 0.6 else text[::-1] for text in references]
    metrics = [measure(metric([references]), texts) for metric in (ExactMatch, CharacterErrorRate)]
    resampling = Resampling(400, seed=3)
    matches = [100.0 * (text == right) for text, right in zip(texts, references, strict=True)]
    edits = [*map(plain_edit_distance, texts, references)]
    samples = [counts for block in resampling.samples(60) for counts in block.tolist()]
    shares, rates = [], []
    for counts in samples:
        drawn = [index for index, count in enumerate(counts) for _ in range(count)]
        shares.append(sum(matches[index] for index in drawn) / 60)
        characters = sum(len(references[index]) for index in drawn)
        rates.append(100 * sum(edits[index] for index in drawn) / characters)
    for (low, high), scores in zip(
        confidence_intervals(metrics, resampling), (shares, rates), strict=True
    ):
        ordered = sorted(scores)
        assert (low, high) == pytest.approx((ordered[10], ordered[-11]))  # a fortieth outside
        assert low < high


def test_a_clear_difference_is_significant_and_none_never_is():
    references = [f"line {number}" for number in range(100)]
    wrong = [text if number % 4 else "x" for number, text in enumerate(references)]
    for metric in (ExactMatch, CharacterErrorRate):
        good, bad = (measure(metric([references]), texts) for texts in (references, wrong))
        assert compare([good], [bad], resampling=Resampling(300, 1))[0].p_value < 0.01
        assert compare([bad], [bad], resampling=Resampling(300, 1))[0].p_value == 1
