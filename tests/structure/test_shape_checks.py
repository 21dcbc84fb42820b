"""The tests check the shapes in heedful's signatures, at least in each test's first calls."""

import jaxtyping
import pytest
import torch
from tests.support.shape_checks import CHECKED_CALLS

from heedful.search.scoring import token_log_probabilities


def compute(width):
    targets = torch.zeros(2, dtype=torch.int64)
    return token_log_probabilities(torch.zeros(2, 3), targets, torch.zeros(4, width))


def test_a_wrong_shape_is_refused_by_the_signature():
    assert compute(3).shape == (2,)
    with pytest.raises(jaxtyping.TypeCheckError, match="weight"):
        compute(5)


def test_later_calls_of_a_long_test_are_not_checked():
    for _ in range(CHECKED_CALLS):
        compute(3)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        compute(5)


def test_the_next_test_is_checked_again():
    with pytest.raises(jaxtyping.TypeCheckError, match="weight"):
        compute(5)
