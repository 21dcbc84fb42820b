"""Cells: torch's, in value and gradient, whole or step by step, and never reading padding."""

import pytest
import torch
from torch import nn

from heedful.families.recurrent.cells import CELLS, RecurrentLayer, pack, reverse
from heedful.kernels.linear import linear

KINDS = list(CELLS)


def copied(layer, bidirectional=False):
    """Torch's own module with the layer's weights."""
    theirs = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}[layer.cell](
        5, 7, batch_first=True, bidirectional=bidirectional
    )
    theirs.load_state_dict({name: w.clone() for name, w in layer.rnn.state_dict().items()})
    return theirs


def full(*shape):
    return torch.ones(*shape, dtype=torch.bool)


@pytest.mark.parametrize("cell", KINDS)
def test_steps_are_torch_s_in_value_and_gradient(cell):
    layer = RecurrentLayer(cell, 5, 7)
    theirs = copied(layer)
    x = torch.randn(3, 6, 5, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    expected, _ = theirs(y)
    gates, state, outputs = layer.project(x), layer.zero_state(3, x), []
    for place in range(6):
        state = layer.step(gates[:, place], state)
        outputs.append(state[0])
    found = torch.stack(outputs, 1)
    torch.testing.assert_close(found, expected)
    pull = torch.randn_like(expected)
    found.backward(pull)
    expected.backward(pull)
    torch.testing.assert_close(x.grad, y.grad)
    for ours, there in zip(layer.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, there.grad)


@pytest.mark.parametrize("cell", KINDS)
def test_inputs_may_be_projected_in_parts(cell):
    layer = RecurrentLayer(cell, 5, 7)
    x = torch.randn(3, 5)
    first, others, bias = layer.input_parts(2)
    parts = linear(x[:, :2], first, bias) + linear(x[:, 2:], others)
    torch.testing.assert_close(parts, layer.project(x))


@pytest.mark.parametrize("cell", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_padding_is_never_read(cell, bidirectional):
    layer = RecurrentLayer(cell, 5, 7, bidirectional)
    theirs = copied(layer, bidirectional)
    x = torch.randn(3, 6, 5)
    mask = torch.arange(6) < torch.tensor([[2], [6], [1]])
    outputs, final = layer(x, mask)
    changed, _ = layer(x.masked_fill(~mask.unsqueeze(2), 9.0), mask)
    torch.testing.assert_close(changed, outputs)
    for row, length in enumerate([2, 6, 1]):
        expected, last = theirs(x[row : row + 1, :length])
        torch.testing.assert_close(outputs[row : row + 1, :length], expected)
        assert not outputs[row, length:].any()
        last = last if cell == "lstm" else (last,)
        for number, part in enumerate(last):
            torch.testing.assert_close(final.forward[number][row], part[0, 0])
            if bidirectional:
                torch.testing.assert_close(final.backward[number][row], part[1, 0])
    assert (final.backward is None) != bidirectional


@pytest.mark.parametrize("cell", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_sequences_of_any_length_have_torch_s_gradients(cell, bidirectional):
    layer = RecurrentLayer(cell, 5, 7, bidirectional)
    theirs = copied(layer, bidirectional)
    mask = torch.arange(6) < torch.tensor([[2], [6], [1], [6]])
    x = torch.randn(4, 6, 5)
    first = tuple(torch.randn(4, 7) for _ in layer.zero_state(4, x))
    packed = pack(x, mask)
    with torch.no_grad():
        fused, fused_last = layer.run(packed, first)
    out, last = layer.run(packed, first)
    torch.testing.assert_close((out.data, last), (fused.data, fused_last))
    ways = 2 if bidirectional else 1
    given = tuple(part[packed.sorted_indices].expand(ways, -1, -1).contiguous() for part in first)
    expected, _ = theirs(
        packed._replace(unsorted_indices=None, sorted_indices=None),
        given if cell == "lstm" else given[0],
    )
    pull = torch.randn_like(expected.data)
    out.data.backward(pull)
    expected.data.backward(pull)
    for ours, there in zip(layer.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, there.grad)


def test_reversing_leaves_padding_where_it_is():
    x = torch.arange(8).view(2, 4, 1).float()
    mask = torch.tensor([[True, True, True, False], [True, False, False, False]])
    assert reverse(x, mask).flatten(1).tolist() == [[2, 1, 0, 3], [4, 5, 6, 7]]
    assert reverse(reverse(x, mask), mask).equal(x)


def test_a_row_without_any_token_has_no_state():
    outputs, final = RecurrentLayer("lstm", 5, 7)(torch.randn(2, 3, 5), ~full(2, 3))
    assert outputs.isfinite().all() and final.forward[0].isfinite().all()


@pytest.mark.filterwarnings("ignore:LSTM with projections")  # torch's own, of its module
@pytest.mark.parametrize("bidirectional", [False, True])
def test_projected_outputs_are_torch_s_in_value_and_gradient(bidirectional):
    layer = RecurrentLayer("lstm", 5, 7, bidirectional, projection=3)
    theirs = nn.LSTM(5, 7, batch_first=True, bidirectional=bidirectional, proj_size=3)
    theirs.load_state_dict({name: w.clone() for name, w in layer.rnn.state_dict().items()})
    x = torch.randn(3, 6, 5)
    expected, (h, c) = theirs(x)
    found, final = layer(x, full(3, 6))
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(final.forward, (h[0], c[0]))
    with torch.no_grad():
        torch.testing.assert_close(layer(x, full(3, 6))[0], expected)
    pull = torch.randn_like(expected)
    found.backward(pull)
    expected.backward(pull)
    for ours, there in zip(layer.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, there.grad)
    if not bidirectional:
        gates, state = layer.project(x), layer.zero_state(3, x)
        assert [part.shape for part in state] == [(3, 3), (3, 7)]
        for place in range(6):
            state = layer.step(gates[:, place], state)
            torch.testing.assert_close(state[0], expected[:, place])
