"""Recurrent encoders: states in the order of the source, and the last states of each layer."""

import pytest
import torch

from heedful.families.recurrent.decoder import RecurrentDecoder
from heedful.families.recurrent.encoder import RecurrentEncoder
from heedful.families.recurrent.wiring import RecurrentWiring
from heedful.model.halves import Memory

SMALL = {"d_model": 6, "hidden_size": 4, "layers": 2}


def encode(lengths=(5, 3), seed=0, **choices):
    """States, mask and encoder of some random vectors."""
    torch.manual_seed(seed)
    encoder = RecurrentEncoder(RecurrentWiring(**{**SMALL, **choices})).eval()
    x = torch.randn(2, 5, 6)
    mask = (torch.arange(5) < torch.tensor(lengths).unsqueeze(1))[:, None, None]
    with torch.no_grad():
        return encoder, x, encoder.encode(x, mask)


@pytest.mark.parametrize(
    ("choices", "width"),
    [
        ({}, 4),
        ({"direction": "bidirectional"}, 8),
        ({"direction": "first-bidirectional"}, 4),
        ({"direction": "first-bidirectional", "layers": 1}, 8),
        ({"direction": "interleaved"}, 8),
        ({"direction": "interleaved", "fast_forward": True}, 10),  # a quarter of 2 x (4 + 16)
        ({"fast_forward": True, "cell": "gru"}, 4),  # a quarter of 4 + 12
    ],
)
def test_the_width_is_that_of_the_wiring(choices, width):
    encoder, _, memory = encode(**choices)
    assert memory.states.shape == (2, 5, width) and encoder.wiring.output_width == width
    assert len(memory.final) == encoder.wiring.layers


def test_a_reversed_source_is_read_from_its_end():
    encoder, x, memory = encode(reverse_source=True)
    layers = [layer.rnn for layer in encoder.columns[0]]
    with torch.no_grad():
        for row, length in enumerate((5, 3)):
            out = x[row : row + 1, :length].flip(1)
            for layer in layers:
                out, (h, c) = layer(out)
            torch.testing.assert_close(memory.states[row, :length], out[0].flip(0))
            torch.testing.assert_close(memory.final[-1].forward[0][row], h[0, 0])
            torch.testing.assert_close(memory.final[-1].forward[1][row], c[0, 0])


def test_interleaved_columns_change_direction_from_layer_to_layer():
    encoder, x, memory = encode(direction="interleaved")
    one, other = ([layer.rnn for layer in column] for column in encoder.columns)
    with torch.no_grad():
        x = x[:1]
        up = one[1](one[0](x)[0].flip(1))[0].flip(1)  # forward, then backward
        down = other[1](other[0](x.flip(1))[0].flip(1))[0]  # backward, then forward
    torch.testing.assert_close(memory.states[:1], torch.cat([up, down], -1))
    assert memory.final[0].forward is not None and memory.final[0].backward is not None


def test_residuals_begin_with_their_layer():
    plain, x, _ = encode(layers=3)
    with_sum, _, _ = encode(layers=3, residual_from=3)
    with_sum.load_state_dict(plain.state_dict())
    first, second, third = (layer.rnn for layer in plain.columns[0])
    mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    with torch.no_grad():
        below = second(first(x)[0])[0]
        expected = third(below)[0] + below
        torch.testing.assert_close(with_sum.encode(x, mask).states, expected)


def test_a_fast_forward_layer_reads_half_of_the_product_below():
    encoder, x, _ = encode(fast_forward=True)
    first, second = encoder.columns[0]
    with torch.no_grad():
        product = x @ first.rnn.weight_ih_l0.T
        top_input = torch.cat([first.rnn(x)[0], product[..., :8]], -1)
        top = torch.cat([second.rnn(top_input)[0], top_input @ second.rnn.weight_ih_l0.T], -1)
        mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
        expected = encoder.memory_proj(top)
        torch.testing.assert_close(encoder.encode(x, mask).states, expected)


@pytest.mark.parametrize("by_steps", [False, True])
def test_a_fast_forward_layer_of_a_decoder_reads_half_of_the_product_below(by_steps):
    wiring = RecurrentWiring(
        **SMALL,
        memory_width=3,
        score="none",
        feed="none",
        readout="state",
        start="zero",
        fast_forward=True,
    )
    decoder = RecurrentDecoder(wiring).eval()
    decoder.initialize(torch.Generator().manual_seed(1))  # with a forget gate's bias of 1
    x, states = torch.randn(2, 5, 6), torch.zeros(2, 4, 3)
    memory = Memory(states, torch.ones(2, 1, 1, 4, dtype=torch.bool), ())
    first, second = decoder.layers
    with torch.no_grad():
        product = x @ first.rnn.weight_ih_l0.T
        expected = second.rnn(torch.cat([first.rnn(x)[0], product[..., :8]], -1))[0]
        if by_steps:
            state, found = decoder.start(memory), []
            for one in x.split(1, dim=1):
                out, state = decoder.step(one, state)
                found.append(out)
            torch.testing.assert_close(torch.cat(found, 1), expected)
        else:
            torch.testing.assert_close(decoder.decode(x, memory), expected)


def test_what_is_fed_to_all_layers_widens_all():
    wiring = RecurrentWiring(
        **SMALL, memory_width=3, score="general", feed="context", feed_layers="all"
    )
    widths = [layer.rnn.input_size for layer in RecurrentDecoder(wiring).layers]
    assert widths == [6 + 3, 4 + 3]
