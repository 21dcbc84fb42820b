from itertools import pairwise

import torch
from torch import nn

from heedful.kernels.add_norm import add_norm, has_add_norm, plain_add_norm
from heedful.kernels.dropout import LEVELS, drop_threshold, hashed_bits


def random_keys(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-(1 << 31), (1 << 31) - 1, (2,), dtype=torch.int32, generator=generator)


def test_hashed_bits_are_spread_evenly_and_differ_by_key():
    count, probability = 1 << 18, 0.1
    error = (probability * (1 - probability) / count) ** 0.5
    drawn = [hashed_bits(count, random_keys(seed)) for seed in range(6)]
    for bits in drawn:
        assert 0 <= int(bits.min()) < int(bits.max()) < LEVELS
        dropped = (bits < drop_threshold(probability)).double()
        assert abs(float(dropped.mean()) - probability) < 5 * error
        centered = dropped - dropped.mean()
        for distance in (1, 2, 7, 64, 512):  # neighbors, and the same column of other rows
            likeness = (centered * centered.roll(distance)).mean() / centered.var()
            assert abs(float(likeness)) < 5 / count**0.5
    for one, other in pairwise(drawn):
        shared = ((one < LEVELS // 2) == (other < LEVELS // 2)).double().mean()
        assert abs(float(shared) - 0.5) < 5 * 0.5 / count**0.5


def test_without_dropout_it_is_the_norm_of_the_sum():
    torch.manual_seed(0)
    x, y = torch.randn(2, 5, 12)
    norm = nn.LayerNorm(12, eps=1e-6)
    nn.init.normal_(norm.weight)
    found = plain_add_norm(x, y, norm.weight, norm.bias, random_keys(1), 0, 1e-6)
    torch.testing.assert_close(found, norm(x + y))


def test_what_is_dropped_and_what_is_enlarged():
    x, y = torch.zeros(64, 64), torch.ones(64, 64)
    weight, bias = torch.ones(64), torch.zeros(64)
    threshold = drop_threshold(0.25)
    found = plain_add_norm(x, y, weight, bias, random_keys(2), threshold, 1e-6)
    keep = hashed_bits(64 * 64, random_keys(2)).view(64, 64) >= threshold
    expected = nn.functional.layer_norm(keep / 0.75, (64,))
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_the_operation_for_a_gpu_has_the_shapes_of_its_twin():
    x, weight = torch.empty(5, 12, device="meta"), torch.empty(12, device="meta")
    keys = torch.empty(2, dtype=torch.int32, device="meta")
    out, total, moments = add_norm(x, x, weight, weight, keys, 0, 1e-6)
    assert out.shape == total.shape == x.shape
    assert moments.shape == (2, 5)


def test_a_processor_goes_another_way():
    assert not has_add_norm(torch.zeros(2, 12, dtype=torch.bfloat16), nn.LayerNorm(12))
