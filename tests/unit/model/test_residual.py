import torch

from heedful.model.residual import PostNorm, PreNorm


def test_post_norm_normalises_the_sum_and_pre_norm_does_not():
    x = torch.randn(2, 3, 8)
    torch.testing.assert_close(
        PostNorm(8, 0.0)(x, lambda y: 2 * y), torch.nn.functional.layer_norm(3 * x, (8,), eps=1e-6)
    )
    torch.testing.assert_close(
        PreNorm(8, 0.0)(x, lambda y: 2 * y),
        x + 2 * torch.nn.functional.layer_norm(x, (8,), eps=1e-6),
    )
