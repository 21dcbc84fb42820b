"""What makes a head worth showing as one that knows of structure."""

import numpy as np
import pytest

from heedful.paper.figures import structure


def test_a_distance_a_place_and_no_preference_are_no_structure():
    count = 8
    before = np.eye(count, k=-1)
    before[0, 0] = 1
    full_stop = np.zeros((count, count))
    full_stop[:, -1] = 1
    even = np.full((count, count), 1 / count)
    pairs = np.eye(count)[[3, 6, 0, 7, 1, 2, 5, 4]]
    found = structure(np.stack([before, full_stop, even, pairs]))
    assert found[0] == pytest.approx([1, 7 / 8, 2 / 8 * 1 / 4 + 6 / 8 * 1 / 8, 1 / 8], abs=0.1)
    assert found[1] == pytest.approx([1, 1 / 8, 1, 0])
    assert found[2] == pytest.approx([0, 1 / 8, 1, 0])
    assert found[3, 0] == pytest.approx(1)
    assert found[3, 3] == found[:, 3].max() > 0.6


def test_structure_is_what_plain_loops_find():
    random = np.random.default_rng(2).random((3, 5, 5))
    look = random / random.sum(axis=-1, keepdims=True)
    for head, (sharp, distance, common, summary) in zip(look, structure(look), strict=True):
        entropies = [-sum(w * np.log(w) for w in row) for row in head]
        assert sharp == pytest.approx(1 - np.mean(entropies) / np.log(5))
        by_distance = {
            offset: sum(head[i, i + offset] for i in range(5) if 0 <= i + offset < 5) / 5
            for offset in range(-4, 5)
        }
        assert distance == pytest.approx(max(by_distance.values()))
        mean = head.mean(axis=0)
        overlaps = [sum(min(a, b) for a, b in zip(row, mean, strict=True)) for row in head]
        assert common == pytest.approx(np.mean(overlaps))
        assert summary == pytest.approx(sharp * (1 - max(distance, common)))


def test_a_sentence_of_one_word_has_no_structure():
    assert structure(np.ones((2, 1, 1)))[:, 3].tolist() == [0, 0]
