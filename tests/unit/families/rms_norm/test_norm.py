"""Norm by the root of the mean square, beside its formula."""

import numpy as np
import pytest
import torch

from heedful.families.rms_norm.norm import build_norm
from heedful.model.layers import EncoderLayer
from tests.support.models import batch, small


def test_it_is_the_formula():
    norm = build_norm(6, 0.25)
    with torch.no_grad():
        norm.weight.uniform_(-2, 2)
    x = torch.randn(3, 5, 6)
    numbers, gain = x.double().numpy(), norm.weight.detach().double().numpy()
    wanted = numbers / np.sqrt((numbers**2).mean(axis=-1, keepdims=True) + 0.25) * gain
    np.testing.assert_allclose(norm(x).detach().numpy(), wanted, atol=1e-6)


def test_half_precision_is_normalized_in_full():
    norm = build_norm(64, 1e-6).bfloat16()
    x = 100 * torch.randn(4, 64).bfloat16()
    wanted = build_norm(64, 1e-6)(x.float())
    torch.testing.assert_close(norm(x).float(), wanted, atol=2e-2, rtol=1e-2)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_all_norms_of_a_model_are_of_this_kind(norm):
    model = small(norm_kind="rms", norm=norm, norm_epsilon=0.5)
    norms = {name: m for name, m in model.named_modules() if isinstance(m, torch.nn.RMSNorm)}
    assert len(norms) == 10 + 2 * (norm == "pre")
    assert {part.eps for part in norms.values()} == {0.5}
    assert not any(isinstance(part, torch.nn.LayerNorm) for part in model.modules())
    assert not any(name.endswith("norm.bias") for name, _ in model.named_parameters())
    assert any(isinstance(part, EncoderLayer) for part in model.modules())
    assert model.states(*batch()).isfinite().all()
