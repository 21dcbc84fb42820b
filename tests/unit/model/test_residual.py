import torch

from heedful.model.residual import PostNorm, PreNorm


def test_post_norm_normalizes_the_sum_and_pre_norm_does_not():
    x = torch.randn(2, 3, 8)
    torch.testing.assert_close(
        PostNorm(8, 0.0)(x, lambda y: 2 * y), torch.nn.functional.layer_norm(3 * x, (8,), eps=1e-6)
    )
    torch.testing.assert_close(
        PreNorm(8, 0.0)(x, lambda y: 2 * y),
        x + 2 * torch.nn.functional.layer_norm(x, (8,), eps=1e-6),
    )


def test_without_residuals_only_the_sub_layer_s_output_goes_on():
    x = torch.randn(2, 3, 8)
    normed = torch.nn.functional.layer_norm(x, (8,), eps=1e-6)
    pre, post = (wiring(8, 0.0, residual=False) for wiring in (PreNorm, PostNorm))
    torch.testing.assert_close(pre(x, lambda y: 2 * y), 2 * normed)
    torch.testing.assert_close(
        post(x, lambda y: 2 * y), torch.nn.functional.layer_norm(2 * x, (8,), eps=1e-6)
    )


def test_without_a_norm_pre_and_post_are_one():
    x = torch.randn(2, 3, 8)
    for wiring in (PreNorm, PostNorm):
        assert wiring(8, 0.0, norm_kind="none")(x, lambda y: 2 * y).equal(3 * x)
        assert not list(wiring(8, 0.0, norm_kind="none").parameters())
