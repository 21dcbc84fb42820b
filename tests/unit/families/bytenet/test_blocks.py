"""ByteNet's blocks beside torch's own modules, what they reach, and the room for the target."""

import pytest
import torch
from torch import nn

from heedful.errors import SettingError
from heedful.families.bytenet.blocks import (
    ByteNetBlock,
    ByteNetSizes,
    Unfolding,
    repeated_dilations,
)


def test_dilations_double_and_begin_again():
    assert repeated_dilations(7, 4) == (1, 2, 4, 1, 2, 4, 1)
    assert repeated_dilations(30, 16) == (1, 2, 4, 8, 16) * 6
    assert repeated_dilations(3, 1) == (1, 1, 1)


@pytest.mark.parametrize(("kernel", "blocks", "largest"), [(3, 5, 4), (5, 3, 2), (2, 4, 8)])
def test_the_receptive_field_is_that_of_the_formula(kernel, blocks, largest):
    """Measured by gradients: which inputs change one output."""
    sizes = ByteNetSizes(8, 4, kernel, repeated_dilations(blocks, largest), 0.0, 1e-6)
    field = sizes.receptive_field
    assert field == 1 + (kernel - 1) * sum(repeated_dilations(blocks, largest))
    for causal in (False, True) if kernel % 2 else (True,):
        torch.manual_seed(0)
        x = torch.randn(1, 101, 8, requires_grad=True)
        out = x
        for dilation in sizes.dilations:
            out = ByteNetBlock(sizes, dilation, causal)(out)
        out[0, 50].sum().backward()
        (reached,) = x.grad[0].abs().sum(-1).nonzero(as_tuple=True)
        first, last = reached.min().item(), reached.max().item()
        assert last - first + 1 <= field
        ends = (50 - field + 1, 50) if causal else (50 - field // 2, 50 + field // 2)
        assert (first, last) == ends


@pytest.mark.parametrize(
    ("factor", "offset", "columns"), [(1.0, 0, 10), (1.2, 0, 12), (1.1, 0, 11), (1.25, 2, 15)]
)
def test_room_is_a_times_the_length_rounded_up_and_b(factor, offset, columns):
    unfolding = Unfolding(4, factor, offset, learned=True)
    real = torch.arange(10) < torch.tensor([[10], [3]])
    x, unfolded = unfolding(torch.ones(2, 10, 4), real)
    assert x.shape == (2, columns, 4) and unfolded.sum(1).tolist() == [
        columns,
        -int(-3 * factor // 1) + offset,
    ]


@pytest.mark.parametrize("learned", [True, False])
def test_columns_beyond_the_source_hold_padding(learned):
    unfolding = Unfolding(4, 2.0, 0, learned)
    expected = torch.zeros(4)
    if learned:
        expected = torch.tensor([1.0, -2.0, 3.0, 4.0])
        unfolding.padding.data = expected.clone()
    real = torch.arange(5) < torch.tensor([[5], [2]])
    x, unfolded = unfolding(torch.full((2, 5, 4), 7.0), real)
    assert (x[0, :5] == 7).all() and (x[1, :2] == 7).all()
    assert torch.equal(x[0, 5:], expected.expand(5, 4))
    assert torch.equal(x[1, 2:4], expected.expand(2, 4))
    assert not x[1, 4:].any() and not unfolded[1, 4:].any()


@pytest.mark.parametrize("causal", [False, True])
def test_a_block_and_its_gradients_are_those_of_torch_s_own_modules(causal):
    """The block of Figure 3, left, as pip's `sequence-models` builds it too."""
    torch.manual_seed(1)
    sizes = ByteNetSizes(12, 6, 3, (4,), 0.0, 1e-5)
    block = ByteNetBlock(sizes, 4, causal).double()
    convolution = nn.Conv1d(6, 6, 3, dilation=4, padding=0 if causal else 4)
    parts = [nn.LayerNorm(12), nn.Linear(12, 6), nn.LayerNorm(6), nn.LayerNorm(6), nn.Linear(6, 12)]
    ours = [block.norm_in, block.proj_in, block.norm_conv, block.norm_out, block.proj_out]
    for one, other in zip(ours, parts, strict=True):
        other.double().load_state_dict(one.state_dict())
    convolution.double().weight.data = block.convolution.weight.data.permute(0, 2, 1).clone()
    convolution.bias.data = block.convolution.bias.data.clone()
    real = torch.arange(15).unsqueeze(1) < torch.tensor([15, 9]).view(2, 1, 1)
    x = torch.randn(2, 15, 12, dtype=torch.double, requires_grad=True)
    twin_x = x.detach().clone().requires_grad_()
    inner = torch.relu(parts[2](parts[1](torch.relu(parts[0](twin_x))))) * real
    padded = nn.functional.pad(inner.transpose(1, 2), (8, 0)) if causal else inner.transpose(1, 2)
    twin = twin_x + parts[4](torch.relu(parts[3](convolution(padded).transpose(1, 2))))
    out, upstream = block(x, real), torch.randn(2, 15, 12, dtype=torch.double)
    torch.testing.assert_close(out, twin, atol=1e-10, rtol=0)
    (out * upstream).sum().backward()
    (twin * upstream).sum().backward()
    torch.testing.assert_close(x.grad, twin_x.grad, atol=1e-9, rtol=0)
    found = block.convolution.weight.grad.permute(0, 2, 1)
    torch.testing.assert_close(found, convolution.weight.grad, atol=1e-9, rtol=0)
    for one, other in zip(ours, parts, strict=True):
        torch.testing.assert_close(one.weight.grad, other.weight.grad, atol=1e-9, rtol=0)


def test_a_dropped_out_block_keeps_its_input():
    torch.manual_seed(0)
    block = ByteNetBlock(ByteNetSizes(16, 8, 3, (1,), 0.5, 1e-6), 1, causal=True)
    x = torch.randn(2, 9, 16)
    changed = (block.train()(x) != x).float().mean()
    assert 0.3 < changed < 0.7
    assert (block.eval()(x) != x).float().mean() > 0.95


def test_a_kernel_of_no_position_is_refused():
    with pytest.raises(SettingError, match="`kernel` must be at least 1"):
        ByteNetSizes(8, 4, 0, (1,), 0.1)
