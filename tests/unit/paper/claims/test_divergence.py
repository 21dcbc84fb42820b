import numpy as np
import pytest

from heedful.paper.claims.divergence import different_heads, entropy


def test_heads_that_attend_alike_are_one_and_those_without_a_common_key_are_all():
    alike = np.tile(np.random.default_rng(1).dirichlet(np.ones(5), size=3), (4, 1, 1))
    assert different_heads(alike) == pytest.approx(1)
    apart = np.eye(4)[:, None]  # each of four heads attends to a key of its own
    assert different_heads(apart) == pytest.approx(4)
    assert different_heads(np.repeat(apart, 2, axis=0)) == pytest.approx(4)  # each of them twice


def test_two_heads_differ_by_their_jensen_shannon_divergence():
    first, second = np.random.default_rng(1).dirichlet(np.ones(5), size=(2, 1))
    middle = (first + second) / 2
    bits = sum((one * np.log2(one / middle)).sum() for one in (first, second)) / 2
    assert different_heads(np.stack((first, second))) == pytest.approx(2**bits)


def test_entropy_is_0_for_one_key_and_the_number_of_bits_for_equal_ones():
    assert entropy(np.array([[1.0, 0, 0, 0], [0.25] * 4])) == pytest.approx([0, 2])
