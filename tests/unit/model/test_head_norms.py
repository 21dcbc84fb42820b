"""Norms of the heads of an attention."""

import torch
from torch import nn

from heedful.model.head_norms import HeadNorms


def test_each_head_is_normalized_alone_and_queries_get_the_factor():
    norms = HeadNorms(nn.RMSNorm, 4, 1e-6, factor=3.0)
    with torch.no_grad():
        norms.key.weight.copy_(torch.arange(4.0))
    x = torch.randn(2, 5, 12)
    heads = x.unflatten(-1, (3, 4))
    lengths = (heads.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    torch.testing.assert_close(norms.queries(x), (3.0 * heads / lengths).flatten(-2))
    torch.testing.assert_close(norms.keys(x), (heads / lengths * torch.arange(4.0)).flatten(-2))
