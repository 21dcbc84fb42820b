"""
Convolutional sequence to sequence learning (Gehring et al. 2017), as fairseq implements it.

::

    encoder                                     decoder

    e = embedding + position                    e = embedding + position
    x = fc1(e)                                  x = fc1(e)
    each layer                                  each layer
      y = GLU(convolution(x))   centered           y = GLU(convolution(x))         causal
                                                  q = (in_proj(y) + e) sqrt(1/2)
                                                  c = softmax(q keys) values sqrt(m)
                                                  y = (y + out_proj(c)) sqrt(1/2)
      x = (y + x) sqrt(1/2)                       x = (y + x) sqrt(1/2)
    keys   = fc2(x)                             fc2(x) times output matrix
    values = (keys + e) sqrt(1/2)

m is the number of real source tokens. If the widths of x and y differ, x is projected. By default,
all convolutions and linear layers except the output matrix have weight normalization. The factor
sqrt(1/2) gives the sum of two terms the variance of each term. The factor sqrt(m) does the same for
a mean of m values (section 3.5).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.arguments import check_counts, check_fields
from heedful.families.convolution import Convolution, sentence_places
from heedful.families.row_state import RowState
from heedful.kernels.api import Dropout, Packing, leaves_padding_out
from heedful.model.flops import DecoderFlops, RowLengths
from heedful.model.halves import (
    Memory,
    SourceEncoder,
    SourceMask,
    States,
    TargetDecoder,
    WeightLists,
)
from heedful.model.layout import pad, unpad

_ROOT_HALF = math.sqrt(0.5)
_TABLE_DEVIATION = 0.1  # section 3.5; fairseq's Embedding


class LayerShape(NamedTuple):
    """The shape of one layer."""

    channels: int
    """Width of the layer's output."""
    kernel: int
    """Number of positions that the layer reads."""
    residual: int = 1
    """Which input is added: 1 is the layer's own, 2 is that of the layer below; 0 means none."""


@dataclass(frozen=True)
class ConvS2SWiring:
    """Sizes and settings of an encoder or decoder."""

    d_model: int
    """Width of the embeddings, and of the queries and keys of attention."""
    layers: tuple[LayerShape, ...]
    dropout: float = 0.0
    """Dropout probability of each layer's input, and of a decoder's output."""
    weight_norm: bool = True
    gradient_scale: float = 1.0
    """Factor by which the gradient of an encoder's output is multiplied."""
    attending: tuple[bool, ...] = ()
    """Whether each layer of a decoder attends to the memory."""
    out_embed_dim: int = 0
    """Width of a decoder's output."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_counts(d_model=self.d_model, layers=len(self.layers))


class ConvS2SStack(nn.Module):
    """Common base of encoder and decoder: `fc1`, gated layers with residual connections, `fc2`."""

    def __init__(self, wiring: ConvS2SWiring, outputs: int, causal: bool) -> None:
        super().__init__()
        self.wiring, self.width = wiring, outputs
        self.dropout = Dropout(wiring.dropout)
        widths = [wiring.layers[0].channels, *[shape.channels for shape in wiring.layers]]
        self.fc1 = self._linear(wiring.d_model, widths[0])
        self.projections, self.convolutions = nn.ModuleList(), nn.ModuleList()
        for number, (channels, kernel, residual) in enumerate(wiring.layers):
            # residual 1 adds this layer's own input, and residual 2 adds the input of the layer
            # below
            source = widths[number + 1 - residual] if residual else channels
            same = source == channels
            self.projections.append(nn.Identity() if same else self._linear(source, channels))
            self.convolutions.append(
                Convolution(
                    widths[number],
                    2 * channels,
                    kernel,
                    causal=causal,
                    weight_norm=wiring.weight_norm,
                )
            )
        self.fc2 = self._linear(widths[-1], outputs)

    def _linear(self, inputs: int, outputs: int) -> Convolution:
        """Make a linear layer: a convolution with a kernel of one position."""
        return Convolution(inputs, outputs, 1, weight_norm=self.wiring.weight_norm)

    def _run_layers(
        self,
        x: Tensor,
        convolve: Callable[[int, Tensor], Tensor],
        attend: Callable[[int, Tensor], Tensor] | None = None,
    ) -> Tensor:
        """Run all layers on the embeddings; `convolve` and `attend` receive a layer's index."""
        inputs = [self.fc1(x)]  # each (batch, time, channels)
        for number, shape in enumerate(self.wiring.layers):
            y = nn.functional.glu(convolve(number, inputs[-1]))
            if attend is not None:
                y = attend(number, y)
            if shape.residual:
                below, projection = inputs[-shape.residual], self.projections[number]
                y = (y + projection(below)) * _ROOT_HALF
            inputs.append(y)
        return inputs[-1]

    @torch.no_grad()
    def initialize(self, generator: torch.Generator) -> None:
        """
        Draw weights as fairseq does (section 3.5 and appendix A).

        Weights before a GLU have four times the variance, because a GLU reduces the variance to
        about a quarter.
        """
        keep_probability = 1.0 - self.wiring.dropout
        for layer in self.modules():
            if isinstance(layer, Convolution):
                share = 1.0
                if layer is self.fc1:
                    share = keep_probability
                elif any(layer is convolution for convolution in self.convolutions):
                    share = 4.0 * keep_probability
                deviation = math.sqrt(share / (layer.kernel * layer.inputs))
                layer.weight.normal_(0.0, deviation, generator=generator)
                layer.bias.zero_()
                layer.reset_gain()

    @torch.no_grad()
    def initialize_table(self, weight: Tensor, generator: torch.Generator) -> None:
        """Draw a table, or the output matrix, with a standard deviation of 0.1."""
        weight.normal_(0.0, _TABLE_DEVIATION, generator=generator)

    def _flops_of_layers(self, lengths: RowLengths) -> int:
        """Count the operations of all multiplications by weights."""
        weights = sum(
            layer.weight.numel() for layer in self.modules() if isinstance(layer, Convolution)
        )
        return 2 * weights * int(lengths.computed(leaves_padding_out(self, keys=0)).sum())


class ConvS2SEncoder(ConvS2SStack, SourceEncoder):
    """A convolutional encoder (section 3.2); padding is removed or zeroed before convolutions."""

    def __init__(self, wiring: ConvS2SWiring) -> None:
        super().__init__(wiring, wiring.d_model, causal=False)

    def encode(self, x: States, mask: SourceMask, weights: list[Tensor] | None = None) -> Memory:
        real = mask[:, 0, 0]  # (batch, time)
        rows, packing = unpad(x, real, keys=0)  # on a CPU, only the real tokens
        places = None if packing is None else sentence_places(packing, real)

        def convolve(number: int, below: Tensor) -> Tensor:
            """Convolve within the sentence."""
            if packing is None:
                below = below.masked_fill(~real.unsqueeze(2), 0.0)
            return self.convolutions[number](self.dropout(below), places)

        z = pad(self.fc2(self._run_layers(rows, convolve)), packing)
        z = z.masked_fill(~real.unsqueeze(2), 0.0)  # (batch, time, d_model)
        z = _ScaleGradient.apply(z, self.wiring.gradient_scale)
        return Memory((z + x) * _ROOT_HALF, mask, keys=z)

    def flops(self, source: RowLengths) -> int:
        return self._flops_of_layers(source)


@dataclass(frozen=True)
class ConvS2SState(RowState):
    """The state of a convolutional decoder between two steps: a `DecodingState`."""

    of_source: ClassVar[tuple[str, ...]] = ("keys", "values", "mask")

    past: tuple[Tensor, ...]
    """The last inputs of each layer, shape (rows, kernel - 1, channels)."""
    keys: Tensor
    """Keys of attention, shape (sentences, source, d_model)."""
    values: Tensor
    """Values of attention, shape (sentences, source, d_model)."""
    mask: Tensor
    """True at real source tokens, shape (sentences, 1, source)."""
    length: int = 0
    """Number of target tokens read so far."""
    attention: Tensor | None = None
    """Attention weights of the last step, averaged over the layers, shape (rows, source)."""


class ConvS2SDecoder(ConvS2SStack, TargetDecoder):
    """
    A convolutional decoder whose layers attend one after the other (section 3.3).

    The state of a search contains the last inputs of each layer.
    """

    def __init__(self, wiring: ConvS2SWiring) -> None:
        super().__init__(wiring, wiring.out_embed_dim, causal=True)
        self.attention = nn.ModuleDict(
            {
                str(number): ConvS2SAttention(shape.channels, wiring.d_model, wiring.weight_norm)
                for number, shape in enumerate(wiring.layers)
                if wiring.attending[number]
            }
        )

    def decode(
        self,
        x: States,
        memory: Memory,
        weights: WeightLists = None,
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time width"]:
        x, packing = unpad(x, real, keys=0)  # on a CPU, only the real tokens
        places = None
        if packing is not None and real is not None:
            places = sentence_places(packing, real)

        def convolve(number: int, below: Tensor) -> Tensor:
            """Convolve all positions; real positions never read padding, which comes after them."""
            return self.convolutions[number](self.dropout(below), places)

        out, recorded = self._run(x, self.start(memory), convolve, packing)
        if weights is not None:
            weights[1].extend(part.unsqueeze(1) for part in recorded)  # (batch, 1, time, source)
        return pad(out, packing)

    def start(self, memory: Memory) -> ConvS2SState:
        states = memory.states
        past = tuple(layer.first_past(len(states), states) for layer in self._convolutions())
        keys = states if memory.keys is None else memory.keys
        return ConvS2SState(past, keys, states, memory.mask[:, 0])

    def step(
        self, x: Float[Tensor, "sentences hypotheses d_model"], state: ConvS2SState
    ) -> tuple[Float[Tensor, "sentences hypotheses width"], ConvS2SState]:
        newer = []

        def convolve(number: int, below: Tensor) -> Tensor:
            """Compute one more position of each row."""
            rows = self.dropout(below.flatten(0, 1))  # (rows, channels)
            out, past = self._convolutions()[number].step(rows, state.past[number])
            newer.append(past)
            return out.unflatten(0, below.shape[:2])

        out, recorded = self._run(x, state, convolve)
        attention = torch.stack(recorded).mean(0).flatten(0, 1)  # (rows, source)
        past = tuple(newer)
        return out, ConvS2SState(
            past, state.keys, state.values, state.mask, state.length + 1, attention
        )

    def flops(self, target: RowLengths, memory: RowLengths) -> DecoderFlops:
        pairs = int((target.places * memory.places).sum())  # attention restores the padding
        attentions = 2 * 2 * self.wiring.d_model * sum(self.wiring.attending) * pairs
        return DecoderFlops(self._flops_of_layers(target) + attentions)

    def _convolutions(self) -> Sequence[Convolution]:
        """Return the convolution of each layer."""
        return [layer for layer in self.convolutions if isinstance(layer, Convolution)]

    def _run(
        self,
        x: Tensor,
        state: ConvS2SState,
        convolve: Callable[[int, Tensor], Tensor],
        packing: Packing | None = None,
    ) -> tuple[Tensor, list[Tensor]]:
        """Run all layers; return the output matrix's input, and each layer's attention weights."""
        recorded: list[Tensor] = []

        def attend(number: int, y: Tensor) -> Tensor:
            """Attend in the layers that have attention."""
            if str(number) not in self.attention:
                return y
            y, weights = self.attention[str(number)](
                y, x, state.keys, state.values, state.mask, packing
            )
            recorded.append(weights)
            return y

        out = self._run_layers(x, convolve, attend)
        return self.dropout(self.fc2(out)), recorded


class ConvS2SAttention(nn.Module):
    """The attention of one decoder layer: section 3.3, equations 1 and 2."""

    def __init__(self, channels: int, d_model: int, weight_norm: bool = True) -> None:
        super().__init__()
        self.in_proj = Convolution(channels, d_model, 1, weight_norm=weight_norm)
        self.out_proj = Convolution(d_model, channels, 1, weight_norm=weight_norm)

    def forward(
        self,
        states: Float[Tensor, "_ queries channels"],
        embeddings: Float[Tensor, "_ queries d_model"],
        keys: Float[Tensor, "batch source d_model"],
        values: Float[Tensor, "batch source d_model"],
        mask: Bool[Tensor, "batch 1 source"],
        packing: Packing | None = None,
    ) -> tuple[Float[Tensor, "_ queries channels"], Float[Tensor, "batch _ source"]]:
        """
        Return the sum of states and context, and the attention weights, whose rows sum to one.

        Section 3.5 multiplies the context by m sqrt(1/m), where m is the number of real source
        tokens. `embeddings`: embeddings of the target tokens, including positions. `packing`:
        positions of states and embeddings, if padding was removed.
        """
        queries = (self.in_proj(states) + embeddings) * _ROOT_HALF  # (batch, queries, d_model)
        queries = pad(queries, packing)
        scores = torch.bmm(queries, keys.transpose(1, 2))  # (batch, queries, source)
        # the smallest finite number, so that a row without real tokens has no NaN
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = torch.softmax(scores, dim=-1)
        root = mask.sum(dim=-1, keepdim=True).to(weights.dtype).sqrt()  # (batch, 1, 1)
        context = torch.bmm(weights, values) * root  # (batch, queries, d_model)
        if packing is not None:
            context = packing.pack(context)  # (1, tokens, d_model)
        return (self.out_proj(context) + states) * _ROOT_HALF, weights


class _ScaleGradient(torch.autograd.Function):
    """The identity, whose gradient is multiplied by a number."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float) -> Tensor:
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient * ctx.scale, None
