"""Attention of a search step equals equation 1."""

import pytest
import torch

from heedful.kernels.attention import cached_attention
from heedful.model.attention import scaled_dot_product_attention
from heedful.model.kv_cache import mask_to_bias


@pytest.mark.parametrize("batch", [1, 9])
def test_a_bias_of_minus_infinity_is_a_mask(batch):
    torch.manual_seed(5)
    query, key, value = (torch.randn(batch, 4, n, 8) for n in (3, 7, 7))
    mask = torch.rand(batch, 4, 3, 7) < 0.5
    mask[..., 2] = True
    plain, _ = scaled_dot_product_attention(query, key, value, mask)
    found = cached_attention(query, key, value, mask_to_bias(mask, torch.float32))
    torch.testing.assert_close(found, plain)
