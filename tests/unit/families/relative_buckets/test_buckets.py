"""Buckets of distances, beside a loop that follows the definition."""

import math

import numpy as np
import pytest
import torch

from heedful.errors import SettingError
from heedful.families.relative_buckets.buckets import RelativeBuckets, first_distances


def by_definition(distance, count, most, bidirectional):
    """The bucket of one distance, in fp32 as where T5 was trained."""
    buckets, first = (count // 2, count // 2 * (distance > 0)) if bidirectional else (count, 0)
    far = abs(distance) if bidirectional else max(-distance, 0)
    exact = buckets // 2
    if far < exact:
        return first + far
    share = np.log(np.float32(far / exact)) / np.float32(math.log(most / exact))
    return first + min(buckets - 1, exact + int(share * np.float32(buckets - exact)))


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("count", "most"), [(32, 128), (4, 3), (5, 3), (6, 9), (10, 8), (33, 900)])
def test_each_distance_has_the_bucket_of_the_definition(count, most, bidirectional):
    distances = range(-2 * most, 2 * most + 1)
    table = RelativeBuckets(2, count, most, bidirectional)
    wanted = [by_definition(d, count, most, bidirectional) for d in distances]
    assert table.buckets(torch.tensor(distances)).tolist() == wanted


def test_buckets_of_the_paper_s_sizes():
    table = RelativeBuckets(1)
    assert table.buckets(torch.tensor([0, -1, -7, -8, -127, -128, -9999])).tolist() == [
        *(0, 1, 7, 8),
        *(15, 15, 15),
    ]
    assert table.buckets(torch.tensor([1, 7, 8, 9999])).tolist() == [17, 23, 24, 31]
    one_way = RelativeBuckets(1, bidirectional=False)
    assert one_way.buckets(torch.tensor([5, 0, -15, -16, -9999])).tolist() == [0, 0, 15, 16, 31]


def test_bounds_are_increasing_and_end_below_the_most():
    for buckets, most in ((2, 2), (16, 128), (32, 128), (32, 17)):
        bounds = first_distances(buckets, most)
        assert len(bounds) == buckets - 1
        assert (bounds.diff() >= 0).all() and bounds[-1] <= most


def test_each_head_has_a_number_of_its_own_for_each_bucket():
    table = RelativeBuckets(3, 4, 3)
    with torch.no_grad():
        table.weight.copy_(torch.arange(12.0).view(4, 3))
    added = table(torch.tensor([[[0, 1, -5]]]))
    assert added.shape == (1, 3, 1, 3)
    assert added[0, :, 0].T.tolist() == [[0, 1, 2], [9, 10, 11], [3, 4, 5]]


def test_first_numbers_are_zero_and_get_gradients():
    table = RelativeBuckets(2, 8, 20)
    assert not table.weight.any()
    table(torch.arange(-30, 30).view(1, 1, -1)).sum().backward()
    # none of a key behind the query at distance zero
    assert (table.weight.grad.sum(1) > 0).tolist() == [True] * 4 + [False] + [True] * 3


@pytest.mark.parametrize(
    ("count", "most", "bidirectional"), [(3, 9, True), (1, 9, False), (8, 2, True), (8, 4, False)]
)
def test_sizes_without_room_for_a_logarithm_are_refused(count, most, bidirectional):
    with pytest.raises(SettingError, match="`count` must be at least"):
        RelativeBuckets(2, count, most, bidirectional)
