import inspect
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from heedful.errors import ArgumentError, SettingError
from heedful.model.attention import (
    MultiHeadAttention,
    scaled_dot_product_attention,
)
from heedful.model.feed_forward import FeedForward
from heedful.model.layout import causal_mask, merge_heads, padding_mask, split_heads
from heedful.model.parts import KeyValue

fused_attention = torch.nn.functional.scaled_dot_product_attention


def by_hand(query, key, value, mask):
    """Equation 1, one query at a time, in double precision."""
    context, weights = torch.zeros_like(value[:, :, :1]), None
    batch, heads, queries, d_k = query.shape
    context = torch.zeros(batch, heads, queries, value.size(-1), dtype=torch.float64)
    weights = torch.zeros(batch, heads, queries, key.size(2), dtype=torch.float64)
    for b in range(batch):
        for h in range(heads):
            for q in range(queries):
                allowed = mask.expand(batch, heads, queries, -1)[b, h, q]
                scores = [
                    math.exp(float(query[b, h, q].double() @ k.double()) / math.sqrt(d_k))
                    if ok
                    else 0.0
                    for k, ok in zip(key[b, h], allowed, strict=True)
                ]
                for i, score in enumerate(scores):
                    weights[b, h, q, i] = score / sum(scores)
                    context[b, h, q] += weights[b, h, q, i] * value[b, h, i].double()
    return context, weights


@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.integers(0, 99)
)
def test_plain_and_fused_attention_equal_the_equation(batch, heads, queries, keys, seed):
    torch.manual_seed(seed)
    query = torch.randn(batch, heads, queries, 4)
    key, value = torch.randn(batch, heads, keys, 4), torch.randn(batch, heads, keys, 3)
    mask = torch.rand(batch, 1, queries, keys) < 0.6
    mask[..., 0] = True
    context, weights = scaled_dot_product_attention(query, key, value, mask)
    expected_context, expected_weights = by_hand(query, key, value, mask)
    torch.testing.assert_close(weights.double(), expected_weights, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(context.double(), expected_context, atol=1e-5, rtol=1e-4)
    fused = fused_attention(query, key, value, attn_mask=mask)
    torch.testing.assert_close(fused, context, atol=1e-5, rtol=1e-4)


def test_plain_and_fused_attention_have_equal_gradients():
    torch.manual_seed(1)
    inputs = [torch.randn(2, 3, 7, 8, requires_grad=True) for _ in range(3)]
    mask = causal_mask(7)
    upstream = torch.randn(2, 3, 7, 8)
    plain = torch.autograd.grad(scaled_dot_product_attention(*inputs, mask)[0], inputs, upstream)
    fused = torch.autograd.grad(fused_attention(*inputs, attn_mask=mask), inputs, upstream)
    for one, other in zip(plain, fused, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_a_forbidden_key_changes_nothing():
    torch.manual_seed(2)
    attention = MultiHeadAttention(16, 4)
    x = torch.randn(2, 5, 16)
    ids = torch.tensor([[5, 6, 7, 0, 0], [5, 6, 7, 8, 9]])
    before, _ = attention(x, x, padding_mask(ids, 0))
    changed = x.clone()
    changed[0, 3:] = 100.0
    after, _ = attention(changed, changed, padding_mask(ids, 0))
    torch.testing.assert_close(after[0, :3], before[0, :3])


def test_weights_come_on_request_only_and_sum_to_one():
    attention = MultiHeadAttention(16, 4)
    x = torch.randn(2, 5, 16)
    context, nothing = attention(x, x)
    same, weights = attention(x, x, need_weights=True)
    assert nothing is None
    assert weights.shape == (2, 4, 5, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 5))
    torch.testing.assert_close(context, same)
    assert not any(isinstance(value, torch.Tensor) for value in vars(attention).values())


@pytest.mark.parametrize(("d_k", "d_v"), [(None, None), (3, 5), (8, 2)])
def test_projecting_the_keys_beforehand_gives_the_same(d_k, d_v):
    torch.manual_seed(3)
    attention = MultiHeadAttention(16, 4, d_k, d_v)
    x, memory = torch.randn(2, 3, 16), torch.randn(2, 6, 16)
    no_mask = torch.zeros(2, 4, 3, 6)
    direct, _ = attention(x, memory)
    query, key_value = attention.project_query(x), attention.project_kv(memory)
    torch.testing.assert_close(attention.attend_cached(query, key_value, no_mask), direct)
    direct, _ = attention(x, x)
    query, *key_value = (split_heads(part, 4) for part in attention.project(x, x))
    key_value = KeyValue(*key_value)
    found = attention.attend_cached(query, key_value, no_mask[..., :3])
    torch.testing.assert_close(found, direct)


def test_heads_that_do_not_divide_are_refused():
    with pytest.raises(SettingError, match=r"`heads` must divide d_model=16, but 3 does not"):
        MultiHeadAttention(16, 3)


def refused(call, *arguments):
    """Messages of a block when no type checker checks the calls."""
    function = inspect.unwrap(type(call).forward if isinstance(call, nn.Module) else call)
    with pytest.raises(ArgumentError) as caught:
        function(*([call] if isinstance(call, nn.Module) else []), *arguments)
    return str(caught.value)


@pytest.mark.parametrize("given", [None, 3, "x", [[1.0]], torch.zeros(2, 8), torch.zeros(2, 3, 9)])
def test_blocks_refuse_what_are_no_states_of_their_width(given):
    attention, x = MultiHeadAttention(8, 2), torch.zeros(2, 3, 8)
    assert "`queries_from` of MultiHeadAttention" in refused(attention, given, x)
    assert "`keys_from` of MultiHeadAttention" in refused(attention, x, given)
    whole = torch.zeros(2, 3, 8, dtype=torch.int64)
    assert "got one of int64 of shape (2, 3, 8)" in refused(attention, whole, x)
    if not (isinstance(given, torch.Tensor) and given.size(-1) == 8):
        assert "`x` of FeedForward" in refused(FeedForward(8, 16), given)
    if not isinstance(given, torch.Tensor):
        for place in range(3):
            asked = [x[:, None]] * 3
            asked[place] = given
            assert type(given).__name__ in refused(scaled_dot_product_attention, *asked)


def test_heads_that_cannot_be_multiplied_are_refused_with_their_shapes():
    x, mask = torch.zeros(2, 1, 3, 8), torch.ones(5, 5, dtype=torch.bool)
    other_width, longer = torch.zeros(2, 1, 3, 6), torch.zeros(2, 1, 4, 8)
    for arguments, expected in (
        (
            (x, other_width, x),
            "size on axis -1, but their shapes are (2, 1, 3, 8) and (2, 1, 3, 6)",
        ),
        ((x, x, longer), "size on axis -2, but their shapes are (2, 1, 3, 8) and (2, 1, 4, 8)"),
        ((x, x.double(), x), "must have one dtype, but have float32, float64, float32"),
        ((x.long(), x, x), "`query` of scaled_dot_product_attention must be a tensor of floats"),
        ((x[0, 0, 0], x, x), "got one of float32 of shape (8,)"),
        ((x, x, x, mask), "whose shape is (2, 1, 3, 3), but got one of bool of shape (5, 5)"),
        ((x, x, x, mask[:3, :3].float()), "but got one of float32 of shape (3, 3)"),
    ):
        assert expected in refused(scaled_dot_product_attention, *arguments)


def test_heads_whose_first_axes_broadcast_are_multiplied():
    one, several = torch.randn(1, 1, 5, 8), torch.randn(3, 2, 7, 8)
    mask = torch.ones(3, 1, 1, 7, dtype=torch.bool)
    attend = inspect.unwrap(scaled_dot_product_attention)
    assert attend(one, several, several, mask)[0].shape == (3, 2, 5, 8)
    assert "shapes are (2, 1, 7, 8) and (3, 2, 7, 8)" in refused(
        scaled_dot_product_attention, several[:2, :1], several, several, mask
    )
    with torch.autocast("cpu", torch.bfloat16):
        assert attend(one.bfloat16(), one, one)[0].shape == one.shape


@pytest.mark.parametrize("length", [3, 300])
def test_a_mask_of_numbers_or_of_other_axes_is_refused(length):
    attention, x = MultiHeadAttention(8, 2), torch.zeros(2, length, 8)
    for mask in (
        torch.ones(2, 1, 1, length),  # the fused kernel would add it
        torch.ones(2, 1, 1, length, dtype=torch.int64),
        torch.ones(2, length, length, dtype=torch.bool),  # sentences would be taken for heads
        [[True]],
    ):
        assert "must be a tensor of booleans of shape" in refused(attention, x, x, mask)


def test_long_rows_take_the_fused_kernel_and_agree():
    torch.manual_seed(4)
    attention = MultiHeadAttention(8, 2)
    x = torch.randn(1, 300, 8)
    fused, _ = attention(x, x, causal_mask(300))
    plain, weights = attention(x, x, causal_mask(300), need_weights=True)
    torch.testing.assert_close(fused, plain, atol=1e-5, rtol=1e-4)
    assert weights.triu(1).abs().max() == 0


def test_masks_are_true_where_a_look_is_allowed():
    assert causal_mask(3)[0, 0].tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    assert padding_mask(torch.tensor([[4, 5, 0]]), 0)[0, 0].tolist() == [[True, True, False]]


@pytest.mark.parametrize("length", [5, 300])
def test_unscaled_scores_are_products(length):
    torch.manual_seed(4)
    attention = MultiHeadAttention(8, 2, score="unscaled")
    x = torch.randn(2, length, 8)
    query, key, value = (split_heads(part, 2) for part in attention.project(x, x))
    plain = torch.nn.functional.linear(x, attention.qkv_proj.weight, attention.qkv_proj.bias)
    torch.testing.assert_close(merge_heads(query), 2 * plain[..., :8])  # the root of d_k = 4
    scores = (query / 2) @ key.transpose(2, 3)
    expected = attention.out_proj(merge_heads(torch.softmax(scores, -1) @ value))
    for found in (attention(x, x)[0], attention(x, x.clone())[0]):
        torch.testing.assert_close(found, expected)


def test_a_score_has_one_of_the_names():
    with pytest.raises(SettingError, match="`score` must be scaled or unscaled or additive"):
        MultiHeadAttention(8, 2, score="dot")
