"""A layout says which positions attend to which; removing padding changes no result."""

import pytest
import torch

from heedful.errors import ArgumentError
from heedful.kernels.attention import Packing
from heedful.model.attention import MultiHeadAttention
from heedful.model.layout import Layout, pad, padding_mask, unpad
from heedful.model.window import Window

REAL = torch.arange(9) < torch.tensor([9, 4, 2])[:, None]


def test_a_bare_mask_and_a_layout_of_it_give_the_same():
    attention, x = MultiHeadAttention(8, 2), torch.randn(3, 9, 8)
    mask = padding_mask(REAL.int(), 0)
    bare, _ = attention(x, x, mask)
    assert torch.equal(attention(x, x, Layout(mask))[0], bare)


def test_a_layout_collects_the_weights_of_each_attention():
    attention, x = MultiHeadAttention(8, 2), torch.randn(3, 9, 8)
    collected = []
    layout = Layout(padding_mask(REAL.int(), 0), weights=collected)
    for _ in range(2):
        _, nothing = attention(x, x, layout)
        assert nothing is None
    _, weights = attention(x, x, layout, need_weights=True)
    assert [one.shape for one in collected] == [(3, 2, 9, 9)] * 3
    assert torch.equal(collected[2], weights)
    assert not weights[1, :, :, 4:].any()


def test_weights_are_not_recorded_in_blocks_of_a_window():
    attention, x = MultiHeadAttention(8, 2), torch.randn(3, 9, 8)
    layout = Layout(padding_mask(REAL.int(), 0), window=Window.around(3))
    with pytest.raises(ArgumentError, match="a mask that includes the window"):
        attention(x, x, layout, need_weights=True)


def test_attention_without_padding_gives_the_same_at_real_tokens():
    attention, x = MultiHeadAttention(8, 2), torch.randn(3, 9, 8)
    mask = padding_mask(REAL.int(), 0)
    rows, _ = attention(x, x, mask)
    packing = Packing.of(REAL)
    layout = Layout(mask, packing, packing)
    assert layout.is_unpadded
    tokens, _ = attention(*[packing.pack(x)] * 2, layout)
    assert tokens.shape == (1, 15, 8)
    torch.testing.assert_close(pad(tokens, packing)[REAL], rows[REAL])
    with pytest.raises(ArgumentError, match="weights need padded rows"):
        attention(*[packing.pack(x)] * 2, layout, need_weights=True)


@pytest.mark.parametrize(
    ("real", "keys"),
    [(None, 9), (REAL, 300), (torch.ones(3, 9, dtype=torch.bool), 9)],
    ids=["unknown", "long", "no padding"],
)
def test_rows_stay_where_removing_padding_does_not_pay(real, keys):
    x = torch.randn(3, 9, 8)
    same, packing = unpad(x, real, keys)
    assert same is x
    assert packing is None
    assert pad(x, None) is x


def test_padding_that_was_removed_comes_back_as_zeros():
    x = torch.randn(3, 9, 8)
    tokens, packing = unpad(x, REAL, 9)
    assert tokens.shape == (1, 15, 8)
    assert torch.equal(pad(tokens, packing), x * REAL.unsqueeze(2))


def test_a_layout_refuses_what_is_no_mask():
    layout = object.__new__(Layout)  # its signature is checked in the tests alone
    object.__setattr__(layout, "mask", "everywhere")
    with pytest.raises(ArgumentError, match="the mask of Layout must be a tensor of booleans"):
        layout.__post_init__()
