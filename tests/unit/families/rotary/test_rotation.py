"""Rotary positions: pairs turn, and products depend on distances alone."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import SettingError
from heedful.families.rotary.rotation import RotaryPositions
from heedful.model.attention import MultiHeadAttention
from heedful.model.layout import causal_mask
from heedful.model.relations import Places
from tests.oracles.numpy_attention import NumpyAttention


def attention(d_model=12, heads=2, base=50.0, **sizes):
    torch.manual_seed(4)
    module = MultiHeadAttention(d_model, heads, bias=False, **sizes).double()
    module.rotation = RotaryPositions(module.d_k, base)
    return module


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("sizes", [{}, {"d_k": 4, "d_v": 5}])
def test_it_is_the_attention_of_numpy(is_causal, sizes):
    module = attention(**sizes)
    weights = module.qkv_proj.weight.detach().numpy()
    query, key, value = np.split(weights, np.cumsum(module.widths[:2]))
    oracle = NumpyAttention(
        query, key, value, module.out_proj.weight.detach().numpy(), 2, rotary_base=50.0
    )
    x = torch.randn(1, 9, 12, dtype=torch.float64)
    found, _ = module(x, x, causal_mask(9) if is_causal else None)
    expected = oracle(x[0].numpy(), x[0].numpy(), is_causal)
    np.testing.assert_allclose(found[0].detach().numpy(), expected, atol=1e-12)


@given(st.integers(0, 100_000), st.integers(0, 99))
def test_a_shift_of_all_positions_leaves_attention_as_it_is(shift, seed):
    generator = torch.Generator().manual_seed(seed)
    turn = RotaryPositions(8)
    query, key = (torch.randn(2, 6, 16, generator=generator).double() for _ in range(2))
    near = Places.in_order(6, query.device)
    far = Places(near.numbers + shift)
    scores = [
        torch.einsum(
            "bqhd,bkhd->bhqk",
            *(turn(part, places).unflatten(-1, (2, 8)) for part in (query, key)),
        )
        for places in (near, far)
    ]
    torch.testing.assert_close(*scores, atol=1e-9, rtol=1e-9)


def test_a_turn_keeps_lengths_and_the_first_position():
    turn = RotaryPositions(4)
    x = torch.randn(3, 5, 8)
    turned = turn(x, Places.in_order(5, x.device))
    assert turned[:, 0].equal(x[:, 0])
    pairs = [part.unflatten(-1, (2, 2, 2)).norm(dim=-2) for part in (x, turned)]
    torch.testing.assert_close(*pairs)
    assert (turned[:, 1:] - x[:, 1:]).abs().max() > 0.5


def test_repeated_places_are_looked_up():
    turn = RotaryPositions(6, base=70.0)
    numbers = torch.tensor([[0, 1, 2, 0, 1, 0, 3]])
    x = torch.randn(1, 7, 12)
    torch.testing.assert_close(turn(x, Places(numbers, 4)), turn(x, Places(numbers)))


def test_short_types_turn_in_fp32():
    turn, x = RotaryPositions(8), torch.randn(1, 2000, 8).bfloat16()
    places = Places.in_order(2000, x.device)
    turned = turn(x, places)
    assert turned.dtype == torch.bfloat16
    torch.testing.assert_close(turned, turn(x.double(), places).bfloat16(), atol=0.01, rtol=0.01)


def test_gradients_are_those_of_numbers():
    turn = RotaryPositions(4, 9.0)
    x = torch.randn(2, 3, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda y: turn(y, Places.in_order(3, y.device)), x)


def test_what_cannot_turn_is_refused():
    with pytest.raises(SettingError, match="`d_k` must be even"):
        RotaryPositions(5)
    with pytest.raises(SettingError, match="`base` must be above 1"):
        RotaryPositions(4, 1.0)
    assert "d_k=6, base=10000" in repr(RotaryPositions(6))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_queries_and_keys_are_rotated_together_as_they_are_alone(dtype):
    module = RotaryPositions(4)
    qkv = torch.randn(2, 5, 8 + 4 + 6, dtype=dtype)
    queries, keys, values = qkv.split([8, 4, 6], dim=-1)
    places = Places.in_order(5, qkv.device)
    rotated = module.rotate_both(queries, keys, values, places)
    assert torch.equal(rotated[0], module(queries, places))
    assert torch.equal(rotated[1], module(keys, places))
    assert torch.equal(rotated[2], values)
    apart = module.rotate_both(queries.clone(), keys.clone(), values.clone(), places)
    assert all(map(torch.equal, rotated, apart))


def test_a_table_that_a_search_computed_serves_training():
    module, x = RotaryPositions(6, base=4321.0), torch.randn(1, 3, 6, requires_grad=True)
    places = Places.in_order(3, x.device)
    with torch.inference_mode():
        expected = module(x, places).clone()
    out = module(x, places)
    out.sum().backward()
    assert torch.equal(out, expected) and x.grad is not None


def test_a_table_is_as_exact_as_the_angle_of_the_position():
    module, x = RotaryPositions(2), torch.tensor([[[1.0, 0.0]]]).double()
    for position in (0, 1, 1023, 1024, 99_999):
        here = module(x, Places(torch.tensor([[position]]), position + 1))[0, 0]
        assert here.tolist() == [np.cos(float(position)), np.sin(float(position))]
