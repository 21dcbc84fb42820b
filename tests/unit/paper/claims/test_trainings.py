import numpy as np
import pytest
from sacrebleu import corpus_bleu

from tests.unit.paper.claims.conftest import TARGETS


def test_lines_are_parted_by_the_length_of_the_source(trainings):
    trained = trainings({"good": 8, "short": 4})
    assert {longest: lines.tolist() for longest, lines in trained.parts.items()} == {
        1: [0, 1],
        2: [2, 3],
        3: [4, 5],
        6: [6, 7],
    }
    np.testing.assert_allclose(trained.bleu_by_length("good"), [100] * 4)
    np.testing.assert_allclose(trained.bleu_by_length("short"), [100, 100, 0, 0])


def test_differences_are_of_the_same_sentences(trainings):
    trained = trainings({"good": 8, "short": 4, "half": 7})
    whole = trained.difference("good", "half")
    hypotheses = [*TARGETS[:7], "nothing"]
    expected = 100 - corpus_bleu(hypotheses, [TARGETS]).score
    assert whole.difference == pytest.approx(expected)
    assert (whole.better, whole.worse) == ("good", "half")
    longest = trained.difference("good", "half", longest=True)
    expected = 100 - corpus_bleu(hypotheses[6:], [TARGETS[6:]]).score
    assert longest.difference == pytest.approx(expected)
    low, high = longest.interval
    assert low <= longest.difference <= high
    growth = trained.growth("good", "half")  # equal but in the last part
    assert growth.difference == pytest.approx(longest.difference)
    assert growth.interval[0] <= growth.difference <= growth.interval[1]
    assert trained.growth("good", "good").interval == (0, 0)
