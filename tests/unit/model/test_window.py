"""Windows: blocks equal a band in the mask, in value and gradient, and a search keeps few keys."""

import numpy as np
import pytest
import torch

from heedful.config.model import AttentionConfig
from heedful.model import window
from heedful.model.flops import _pairs_in
from heedful.model.halves import Memory
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Decoder, Encoder
from heedful.model.window import Window, restrict
from tests.support.models import small

REAL = torch.arange(90) < torch.tensor([[90], [41]])


def test_windows_are_those_of_the_figure():
    assert Window.around(3).mask(6).int().tolist() == [
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [0, 1, 1, 1, 0, 0],
        [0, 0, 1, 1, 1, 0],
        [0, 0, 0, 1, 1, 1],
        [0, 0, 0, 0, 1, 1],
    ]
    assert Window.before_and_at(3).mask(6).sum(1).tolist() == [1, 2, 3, 3, 3, 3]
    assert not Window.before_and_at(3).mask(6).triu(1).any()
    assert Window.around(4).width == 5 and Window.before_and_at(4).width == 4


@pytest.fixture(params=["scaled", "additive"])
def score(request):
    return request.param


def stacks(r, score):
    """An encoder and a decoder of two layers in a window of r."""
    config = LayerConfig(16, 32, 2, dropout=0.0, score=score, window=r)
    torch.manual_seed(1)
    return Encoder(config, 2), Decoder(config, 2)


@pytest.mark.parametrize("r", [1, 2, 3, 8, 33, 80])
def test_blocks_equal_a_band_in_the_mask(monkeypatch, r, score):
    """Rows with padding, in value and in the gradient of inputs and weights."""
    encoder, decoder = stacks(r, score)
    x, source = torch.randn(2, 90, 16), torch.randn(2, 7, 16)
    found = {}
    for blocks in (False, True):
        monkeypatch.setattr(window, "SHORT", 0 if blocks else 256)
        monkeypatch.setattr(window, "_PAYS", 0 if blocks else 2)
        monkeypatch.setattr("heedful.model.layout.use_cpu_kernel", lambda *_: False)
        assert (restrict(None, encoder.window, 90, False)[1] is not None) == blocks
        leaf = x.clone().requires_grad_()
        states = encoder(leaf, REAL[:, None, None]) * REAL.unsqueeze(2)
        target = decoder(leaf, source, real=REAL) * REAL.unsqueeze(2)
        leaves = [leaf, *encoder.parameters(), *decoder.parameters()]
        pull = torch.linspace(-1, 1, 16)
        gradients = torch.autograd.grad(((states + target) * pull).square().sum(), leaves)
        found[blocks] = states, target, gradients
    for one, other in zip(found[True][:2], found[False][:2], strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)
    for one, other in zip(found[True][2], found[False][2], strict=True):
        assert (one - other).norm() <= 1e-5 * other.norm() + 1e-6


def test_a_band_is_that_of_full_attention():
    """Removed padding, blocks and recorded weights equal plain attention with the mask."""
    restricted, _ = stacks(5, "scaled")
    full = Encoder(LayerConfig(16, 32, 2, dropout=0.0), 2)
    full.load_state_dict(restricted.state_dict())
    x = torch.randn(2, 90, 16)
    band = Window.around(5).mask(90)[None, None] & REAL[:, None, None]
    band = band | torch.eye(90, dtype=torch.bool)
    expected = full(x, band)
    weights = []
    for found in (restricted(x, REAL[:, None, None]), restricted(x, REAL[:, None, None], weights)):
        torch.testing.assert_close(found[REAL], expected[REAL], atol=1e-6, rtol=1e-5)
    for layer in weights:
        assert not layer.masked_select(~band).any()
        torch.testing.assert_close(layer.sum(-1), torch.ones(2, 2, 90))


def test_nothing_beyond_the_window_is_read():
    _, decoder = stacks(4, "scaled")
    decoder = Decoder(LayerConfig(16, 32, 2, dropout=0.0, window=4), 1)
    x, source = torch.randn(1, 12, 16), torch.randn(1, 3, 16)
    before = decoder(x, source)
    changed = x.clone()
    changed[:, 5] = 9.0
    differs = (decoder(changed, source) != before).any(dim=2)[0]
    assert differs.tolist() == [False] * 5 + [True] * 4 + [False] * 3


def test_a_long_search_keeps_as_many_keys_as_the_window():
    model = small(attention=AttentionConfig(window=4))
    decoder, sentences, width = model.decoder, 2, 3
    memory = Memory(torch.randn(sentences, 5, 16), torch.ones(sentences, 1, 1, 5, dtype=torch.bool))
    inputs = torch.randn(sentences, 300, 16)
    slots, rows = [], torch.arange(sentences).repeat_interleave(width)
    with torch.no_grad():
        whole = decoder(inputs, memory.states, memory.mask)
        state = decoder.start(memory)
        for place in range(300):
            x = inputs[:, place : place + 1].expand(-1, 1 if place == 0 else width, -1)
            states, state = decoder.step(x, state)
            torch.testing.assert_close(states[:, -1], whole[:, place], atol=1e-5, rtol=1e-4)
            if place == 0:
                state = state.select(rows)
            else:  # beams change places
                state = state.select(torch.tensor([2, 0, 1, 5, 5, 3]))
            assert (state.cache.mask_bias == 0).sum(2).eq(min(place + 1, 4)).all()
            slots.append(state.cache.layers[0].keys.size(2))
    assert max(slots[100:]) == max(slots[:60]) <= 64


def test_short_rows_cost_all_pairs_and_long_ones_those_of_blocks():
    window = Window.around(4)
    assert _pairs_in(window, np.array([5, 256]), by_steps=False) == 5 * 5 + 256 * 256
    assert (window.block, window.block_keys) == (32, 36)
    assert _pairs_in(window, np.array([257]), by_steps=False) == 9 * 32 * 36
    assert _pairs_in(window, np.array([2, 7]), by_steps=True) == 1 + 2 + 1 + 2 + 3 + 4 + 3 * 5
