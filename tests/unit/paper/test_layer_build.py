import pytest
import torch

from heedful.families.table1 import LayerSizes
from heedful.paper.layer_build import SeparableConvolution, build_layer
from heedful.paper.layer_kinds import KINDS

SIZES = LayerSizes(n=12, d=64, k=3, r=4)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_a_layer_keeps_the_shape_and_reads_what_it_may(name, causal):
    layer = build_layer(name, SIZES, causal).eval()
    x = torch.randn(1, 12, 64, requires_grad=True)
    out = layer(x)
    assert out.shape == x.shape
    (gradient,) = torch.autograd.grad(out[0, 5].sum(), x)
    seen = (gradient[0] != 0).any(dim=1)
    assert seen[5]
    assert seen[6:].any() == (not causal and name != "recurrent")


def test_a_separable_convolution_is_a_full_one_of_rank_one_kernels():
    layer = SeparableConvolution(4, 3)
    full = layer.pointwise.weight.unsqueeze(2) * layer.depthwise.weight.squeeze(1).unsqueeze(0)
    x = torch.randn(2, 7, 4)
    expected = torch.nn.functional.conv1d(x.transpose(1, 2), full, layer.pointwise.bias, padding=1)
    torch.testing.assert_close(layer(x), expected.transpose(1, 2))
