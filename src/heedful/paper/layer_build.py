"""The layers of Table 1, built from heedful's modules."""

from torch import Tensor, nn

from heedful.families.convolution import Convolution
from heedful.families.table1 import LayerSizes, States
from heedful.kernels.api import Linear
from heedful.model.attention import MultiHeadAttention
from heedful.model.layout import Layout, causal_mask
from heedful.paper.layer_kinds import KINDS, window

# Width of a head, as in the paper's base and big models (Table 3).
_D_K = 64


class AttentionUnderTest(nn.Module):
    """Self-attention of one kind on sequences of one length."""

    def __init__(self, s: LayerSizes, causal: bool, restricted: bool) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(s.d, s.d // _D_K if s.d % _D_K == 0 else 1)
        self.layout = Layout(causal_mask(s.n) if causal else None)
        if restricted:  # computed in blocks, because a band mask would not save multiplications
            self.layout = Layout(window=window(s, causal))

    def forward(self, x: States) -> States:
        """Compute self-attention."""
        out: Tensor = self.attention(x, x, self.layout)[0]
        return out


class SeparableConvolution(nn.Module):
    """
    A convolution of each channel, then one linear map across all channels (Chollet 2017).

    Section 4 of the paper states its cost; no model in heedful has such a layer.
    """

    def __init__(self, d: int, kernel: int, causal: bool = False) -> None:
        super().__init__()
        before = kernel - 1 if causal else (kernel - 1) // 2
        self.padding = (before, kernel - 1 - before)
        self.depthwise = nn.Conv1d(d, d, kernel, groups=d, bias=False)
        self.pointwise = Linear(d, d)

    def forward(self, x: States) -> States:
        """Convolve each channel, then mix the channels."""
        channels = nn.functional.pad(x.transpose(1, 2), self.padding)  # (batch, width, time)
        out: Tensor = self.pointwise(self.depthwise(channels).transpose(1, 2))
        return out  # (batch, time, width)


def build_layer(name: str, s: LayerSizes, causal: bool = False, number: int = 0) -> nn.Module:
    """
    Build a layer that maps states (batch, n, d) to states of the same shape.

    `number`: the index of the layer in a stack, from 0; dilations grow with this index.
    """
    if name == "self-attention":
        return AttentionUnderTest(s, causal, restricted=False)
    if name == "restricted self-attention":
        return AttentionUnderTest(s, causal, restricted=True)
    if (build := KINDS[name].build) is not None:
        return build(s)
    if name == "separable convolution":
        return SeparableConvolution(s.d, s.k, causal)
    dilation = s.k**number if name == "dilated convolution" else 1
    return Convolution(s.d, s.d, s.k, dilation, causal)
