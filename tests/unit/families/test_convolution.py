"""Convolutions: torch's, in value and gradient, whole or step by step."""

import pytest
import torch
from torch import nn

from heedful.families.convolution import Convolution

SHAPES = [(1, 1), (2, 1), (3, 1), (3, 2), (4, 1), (3, 4), (5, 3)]


def torch_s(layer, x, weight=None):
    """The same by torch's kernel."""
    weight = layer.weight if weight is None else weight
    before = layer.span if layer.causal else layer.span // 2
    padded = nn.functional.pad(x.transpose(1, 2), (before, layer.span - before))
    kernel = weight.transpose(1, 2)
    return nn.functional.conv1d(padded, kernel, layer.bias, dilation=layer.dilation).transpose(1, 2)


def gradients(out, tensors):
    """Gradients of the sum of squares."""
    return torch.autograd.grad(out.square().sum(), tensors)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("kernel", "dilation"), SHAPES)
@pytest.mark.parametrize("time", [1, 2, 7])
def test_torch_computes_the_same_value_and_gradient(kernel, dilation, causal, time):
    layer = Convolution(4, 6, kernel, dilation, causal).double()
    x = torch.randn(3, time, 4, dtype=torch.float64, requires_grad=True)
    inputs = (x, layer.weight, layer.bias)
    out, theirs = layer(x), torch_s(layer, x)
    torch.testing.assert_close(out, theirs)
    for ours, other in zip(gradients(out, inputs), gradients(theirs, inputs), strict=True):
        torch.testing.assert_close(ours, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weight_norm_is_torch_s_in_value_and_gradient(dtype):
    layer = Convolution(4, 6, 3, weight_norm=True).to(dtype)
    nn.init.uniform_(layer.gain, 0.5, 2.0)
    x = torch.randn(3, 7, 4, dtype=dtype)
    inputs = (layer.weight, layer.gain)
    normed = nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 6, 3))
    weight = normed.parametrizations.weight[0](layer.gain.view(-1, 1, 1), layer.weight)
    out, theirs = layer(x), torch_s(layer, x, weight)
    torch.testing.assert_close(out, theirs)
    for ours, other in zip(gradients(out, inputs), gradients(theirs, inputs), strict=True):
        torch.testing.assert_close(ours, other)


def test_weight_norm_has_exact_gradients():
    layer = Convolution(2, 3, 3, dilation=2, causal=True, weight_norm=True).double()
    x = torch.randn(2, 4, 2, dtype=torch.float64, requires_grad=True)

    def run(x, weight, gain, bias):
        given = {"weight": weight, "gain": gain, "bias": bias}
        return torch.func.functional_call(layer, given, (x,))

    assert torch.autograd.gradcheck(run, (x, layer.weight, layer.gain, layer.bias))


def test_the_first_gain_leaves_the_weights_as_they_are():
    layer = Convolution(4, 6, 3, weight_norm=True)
    torch.testing.assert_close(layer.used_weight(), layer.weight.flatten(1))


@pytest.mark.parametrize("weight_norm", [False, True])
@pytest.mark.parametrize(("kernel", "dilation"), SHAPES)
def test_steps_equal_the_whole_sequence(kernel, dilation, weight_norm):
    layer = Convolution(4, 6, kernel, dilation, causal=True, weight_norm=weight_norm)
    x = torch.randn(3, 9, 4)
    past, steps = layer.first_past(3, x), []
    assert past.shape == (3, (kernel - 1) * dilation, 4)
    for place in range(9):
        out, past = layer.step(x[:, place], past)
        steps.append(out)
    torch.testing.assert_close(torch.stack(steps, 1), layer(x))


def test_a_causal_convolution_reads_no_later_position():
    layer = Convolution(4, 6, 3, causal=True)
    x = torch.randn(1, 5, 4)
    changed = torch.cat([x[:, :3], torch.randn(1, 2, 4)], 1)
    torch.testing.assert_close(layer(x)[:, :3], layer(changed)[:, :3])


def test_the_normed_weight_is_kept_until_a_weight_changes():
    layer = Convolution(4, 6, 3, weight_norm=True).eval()
    with torch.no_grad():
        kept = layer.used_weight()
        assert layer.used_weight() is kept
        layer.gain.mul_(2)
        torch.testing.assert_close(layer.used_weight(), 2 * kept)
        kept = layer.used_weight()
        layer.weight.data.neg_()  # no version tells of this one, only the change of mode
        layer.train()
        torch.testing.assert_close(layer.used_weight(), -kept)
        layer.eval()
        torch.testing.assert_close(layer.used_weight(), -kept)
    assert layer.used_weight().requires_grad


def test_folding_keeps_the_output():
    layer = Convolution(4, 6, 3, weight_norm=True)
    nn.init.uniform_(layer.gain, 0.5, 2.0)
    x = torch.randn(2, 5, 4)
    before = layer(x)
    layer.fold_weight_norm()
    assert dict(layer.named_parameters()).keys() == {"weight", "bias"}
    torch.testing.assert_close(layer(x), before)
    layer.fold_weight_norm()  # nothing to do
    assert "causal" not in str(layer) and "weight_norm=False" in str(layer)
