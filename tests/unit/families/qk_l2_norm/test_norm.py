"""Queries and keys of length one, beside their formula and in a model."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.families.qk_l2_norm.norm import SCALE, UnitLength
from heedful.model.attention import MultiHeadAttention
from heedful.model.head_norms import HeadNorms
from heedful.model.weights import parameter_count
from tests.support.models import batch, small


@given(st.integers(1, 9), st.integers(0, 99))
def test_all_vectors_have_the_learned_length_and_keep_their_direction(d_k, seed):
    norm = UnitLength(d_k, 1e-6).double()
    x = torch.randn(4, d_k, generator=torch.Generator().manual_seed(seed)).double()
    out = norm(x)
    length = norm.weight.double().expand(4)
    torch.testing.assert_close(out.norm(dim=-1), length)
    torch.testing.assert_close(torch.cosine_similarity(out, x), torch.ones(4).double())


def test_scores_begin_as_ten_times_the_cosine():
    torch.manual_seed(4)
    module = MultiHeadAttention(12, 2, bias=False).double()
    module.norms = HeadNorms(UnitLength, 6, 1e-6).double()
    x = torch.randn(1, 5, 12).double()
    _, weights = module(x, x, need_weights=True)
    query, key, _ = (part.unflatten(-1, (2, 6)) for part in module.qkv_proj(x).chunk(3, dim=-1))
    cosine = torch.cosine_similarity(query.unsqueeze(2), key.unsqueeze(1), dim=-1)
    wanted = torch.softmax(SCALE * cosine, dim=2).permute(0, 3, 1, 2)
    torch.testing.assert_close(weights, wanted, atol=1e-7, rtol=1e-6)  # the scale is fp32


def test_a_vector_of_zeros_stays_and_has_a_gradient():
    norm = UnitLength(4, 0.5)
    x = torch.zeros(2, 4, requires_grad=True)
    norm(x).sum().backward()
    assert not norm(x).any() and x.grad.isfinite().all()


def test_half_precision_is_normalized_in_full():
    x = 100 * torch.randn(4, 64).bfloat16()
    wanted = UnitLength(64, 1e-6)(x.float())
    out = UnitLength(64, 1e-6).bfloat16()(x)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), wanted, atol=2e-2, rtol=1e-2)


def test_every_attention_has_two_numbers_that_learn():
    model = small(attention={"qk_norm": "l2"}).train()
    scales = {name: p for name, p in model.named_parameters() if ".norms." in name}
    assert len(scales) == 2 * 2 + 2 * 4
    assert parameter_count(model) == parameter_count(small()) + 12
    model.states(*batch()).square().sum().backward()
    assert all(scale.grad.abs().sum() > 0 for scale in scales.values())


@pytest.mark.parametrize("score", ["unscaled", "additive"])
def test_scores_of_another_scale_are_refused(score):
    settings = ["model.attention.qk_norm=l2", f"model.attention.score={score}"]
    with pytest.raises(SettingError, match=r"`model.attention.score` must be scaled"):
        load_config("tiny", settings)
    with pytest.raises(SettingError, match="`d_k`"):
        UnitLength(0, 1e-6)
