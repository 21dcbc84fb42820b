"""Dropout of attention weights: in training alone, in every kind of self-attention."""

import pytest
import torch

from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.kernels.dropout import Dropout
from heedful.model.additive import PRODUCTS, Scoring
from heedful.model.attention import MultiHeadAttention, scaled_dot_product_attention
from heedful.model.inference import optimize_for_inference
from heedful.model.known_layers import is_known
from heedful.model.layout import causal_mask, merge_heads, split_heads
from heedful.model.packed import why_not_packed
from tests.support.models import batch, small


def test_values_and_gradients_are_those_of_equation_one_with_weights_dropped():
    torch.manual_seed(3)
    module = MultiHeadAttention(12, 3, dropout=0.4).double().train()
    x = torch.randn(2, 6, 12, dtype=torch.float64, requires_grad=True)
    mask = causal_mask(6)
    torch.manual_seed(9)
    found, _ = module(x, x, mask)
    query, key, value = (split_heads(part, 3) for part in module.project(x, x))
    _, weights = scaled_dot_product_attention(query, key, value, mask)
    torch.manual_seed(9)
    thinned = module.dropout(weights)
    dropped = (thinned == 0) & mask
    assert 0.2 < dropped.sum() / (2 * 3 * 21) < 0.6
    torch.testing.assert_close(
        thinned[thinned != 0], (weights / 0.6)[thinned != 0], rtol=1e-4, atol=0
    )
    expected = module.out_proj(merge_heads(thinned @ value))
    torch.testing.assert_close(found, expected)
    upstream = torch.randn_like(found)
    inputs = (x, *module.parameters())
    for one, other in zip(
        *(torch.autograd.grad(out, inputs, upstream) for out in (found, expected)), strict=True
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("changes", [{}, {"window": 2}, {"score": "additive"}], ids=str)
def test_it_acts_in_training_alone(changes):
    settings = {"attention": {"dropout": 0.5, **changes}, "dropout": 0.0}
    model, plain = small(**settings), small(dropout=0.0, attention=changes)
    pair = batch()
    torch.testing.assert_close(model.states(*pair), plain.states(*pair))
    model.train()
    torch.manual_seed(1)
    first, second = model.states(*pair), model.states(*pair)
    torch.manual_seed(1)
    assert model.states(*pair).equal(first) and not second.equal(first)
    assert (first - plain.states(*pair)).abs().max() > 0.01


def test_fused_kernels_serve_it_outside_of_training_and_packed_rows_do_not():
    model = small(attention={"dropout": 0.1})
    assert is_known(model.encoder)
    assert "dropout of attention weights" in why_not_packed(model)
    expected = model.states(*batch())
    torch.testing.assert_close(
        optimize_for_inference(model, "packed").states(*batch()), expected, atol=1e-5, rtol=1e-4
    )


def test_what_is_beyond_products_is_explicit():
    dropout = Dropout(0.1)
    assert Scoring(dropout=dropout).is_explicit
    assert not Scoring(dropout=dropout.eval()).is_explicit and not PRODUCTS.is_explicit
    assert Scoring(compare=torch.matmul).is_explicit


@pytest.mark.parametrize("share", ["1", "-0.1"])
def test_a_share_is_below_one(share):
    with pytest.raises(SettingError, match=r"model.attention.dropout"):
        load_config("tiny", [f"model.attention.dropout={share}"])
    with pytest.raises(SettingError, match="`dropout` must be at least 0 and below 1"):
        MultiHeadAttention(8, 2, dropout=float(share))
