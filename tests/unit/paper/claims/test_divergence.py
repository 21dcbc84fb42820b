import numpy as np
import pytest

from heedful.paper.claims.divergence import divergence


def test_it_is_0_for_the_same_attention_and_1_bit_for_none_in_common():
    first = np.array([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
    second = np.array([[0.0, 0.5, 0.5], [0.2, 0.3, 0.5]])
    assert divergence(first, first) == 0
    assert divergence(first[:1], second[:1]) == pytest.approx(1)
    assert divergence(first, second) == pytest.approx(0.5)  # the mean of both rows


def test_it_is_that_of_the_definition():
    generator = np.random.default_rng(1)
    first, second = generator.dirichlet(np.ones(5), size=(2, 4))

    def entropy(rows):
        return -(rows * np.log2(rows)).sum(axis=-1)

    expected = entropy((first + second) / 2) - (entropy(first) + entropy(second)) / 2
    assert divergence(first, second) == pytest.approx(expected.mean())
