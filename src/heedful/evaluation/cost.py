"""
Training cost in floating-point operations.

Two ways to say it. The paper multiplies the training time by the number of GPUs and an estimate of
what each sustains (Table 2 and its footnote); that measures the machine that was used up. The other
way counts what the model computes, from its shapes; that measures the model.

Counted are products, a multiply-add as two operations, as everybody counts them (Kaplan et al.
2020, “Scaling Laws for Neural Language Models”, section 2.1). Sums, norms, softmax and the update
of the weights are a few per cent more and left out; looking an embedding up multiplies nothing. The
backward pass has two products for each one of the forward pass.
"""

from dataclasses import dataclass, fields
from typing import NamedTuple

from heedful.model.attention import MultiHeadAttention
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.feed_forward import FeedForward
from heedful.model.layers import DecoderLayer, EncoderLayer
from heedful.model.memory import SourceEncoder, TargetDecoder
from heedful.model.recurrent.cells import RecurrentLayer
from heedful.model.recurrent.decoder import RecurrentDecoder
from heedful.model.recurrent.encoder import RecurrentEncoder

# Section 6.1, footnote 5: “2.8, 3.7, 6.0 and 9.5 TFLOPS for K80, K40, M40 and P100, respectively”.
SUSTAINED_TFLOPS = {"K80": 2.8, "K40": 3.7, "M40": 6.0, "P100": 9.5}
_BACKWARD = 2
Number = int | float


@dataclass(frozen=True)
class Work:
    """
    The number of positions that a model computes.

    Masked positions are computed too, so the causal half of the decoder's self-attention and
    padding count.
    """

    source: Number
    target: Number
    """Positions of either side, padding included."""
    predicted: Number
    """Target positions with an output projection, without padding in training."""
    source_source: Number
    target_target: Number
    target_source: Number
    """Query-key pairs summed over the sentences, for encoder, decoder and cross-attention."""

    @classmethod
    def of_batch(cls, rows: int, source: int, target: int, predicted: int) -> "Work":
        """Count the positions of one batch; all rows are as long as the longest."""
        return cls(
            rows * source,
            rows * target,
            predicted,
            rows * source * source,
            rows * target * target,
            rows * target * source,
        )


@dataclass(frozen=True)
class ForwardFlops:
    """
    Forward operations per position.

    The fields match those of `Work`: the sum of the products is the cost of a pass.
    """

    source: int
    target: int
    """Operations for a source and for a target position, whatever the lengths."""
    predicted: int
    """Operations of the output projection for a position."""
    source_source: int
    target_target: int
    target_source: int
    """Operations for a pair of positions."""

    @classmethod
    def of(cls, model: EncoderDecoder) -> "ForwardFlops":
        """
        Count the operations of a model.

        Keys and values of the memory are computed from the source's states, once per layer, and so
        belong to the source's positions.
        """
        encoder = [layer for layer in model.modules() if isinstance(layer, EncoderLayer)]
        decoder = [layer for layer in model.modules() if isinstance(layer, DecoderLayer)]
        own = [layer.self_attention for layer in decoder]
        cross = [layer.cross_attention for layer in decoder]
        recurrent_encoder, recurrent_decoder = _recurrent(model.encoder), _recurrent(model.decoder)
        return cls(
            source=sum(_own_positions(x.self_attention) + _network(x.feed_forward) for x in encoder)
            + sum(_offering(attention) for attention in cross)
            + recurrent_encoder.each
            + recurrent_decoder.source,
            target=sum(_own_positions(x.self_attention) + _network(x.feed_forward) for x in decoder)
            + sum(_own_positions(attention) - _offering(attention) for attention in cross)
            + recurrent_decoder.each,
            predicted=2 * model.output.weight.numel(),
            source_source=sum(_pair(layer.self_attention) for layer in encoder),
            target_target=sum(map(_pair, own)),
            target_source=sum(map(_pair, cross)) + recurrent_decoder.pair,
        )

    def forward(self, work: Work) -> Number:
        """
        Sum a forward pass.

        Includes the output projection, which search computes at every step too.
        """
        return sum(getattr(self, part.name) * getattr(work, part.name) for part in fields(work))

    def training(self, work: Work) -> Number:
        """
        Sum a forward and a backward pass.

        Every product has two in the backward pass: the gradients of input and weights, or of both
        inputs in attention.
        """
        return (1 + _BACKWARD) * self.forward(work)


def paper_flops(hours: Number, devices: int, sustained_tflops: float) -> float:
    """
    Estimate the cost of a training as the paper does.

    Section 6.1: “multiplying the training time, the number of GPUs used, and an estimate of the
    sustained single-precision floating-point capacity of each GPU”.

    The base and the big model of Table 2, 12 hours and 3.5 days on eight P100:

    >>> f"{paper_flops(12, 8, SUSTAINED_TFLOPS['P100']):.1e}"
    '3.3e+18'
    >>> f"{paper_flops(3.5 * 24, 8, SUSTAINED_TFLOPS['P100']):.1e}"
    '2.3e+19'
    """
    return hours * 3600 * devices * sustained_tflops * 1e12


def _own_positions(attention: MultiHeadAttention) -> int:
    """Operations of the projections Q, K, V and O for one position."""
    return 2 * (attention.qkv_proj.weight.numel() + attention.out_proj.weight.numel())


def _offering(attention: MultiHeadAttention) -> int:
    """Operations of the projections K and V alone."""
    return 2 * attention.d_model * sum(attention.widths[1:])


def _pair(attention: MultiHeadAttention) -> int:
    """Operations of a query and a key in all heads: a score, and a share in the sum of values."""
    return 2 * attention.heads * (attention.d_k + attention.d_v)


class _RecurrentFlops(NamedTuple):
    """Operations of a recurrent encoder or decoder."""

    each: int = 0
    """For one of its own positions."""
    source: int = 0
    """For a source position: the keys of a decoder's attention."""
    pair: int = 0
    """For a target and a source position: a score, and a share in the context."""


def _recurrent(stack: SourceEncoder | TargetDecoder) -> _RecurrentFlops:
    """Count the operations of a recurrent stack; nothing for another one."""
    if not isinstance(stack, RecurrentEncoder | RecurrentDecoder):
        return _RecurrentFlops()
    # without the start state, which is computed once a sentence
    each = sum(
        weight.numel()
        for name, weight in stack.named_parameters()
        if weight.dim() == 2 and "start_proj" not in name
    )
    if isinstance(stack, RecurrentEncoder) and stack.wiring.fast_forward:
        # torch's fused kernel keeps the input's products to itself, so they are computed again
        layers = (layer for layer in stack.modules() if isinstance(layer, RecurrentLayer))
        each += sum(layer.rnn.weight_ih_l0.numel() for layer in layers)  # type: ignore[operator,misc]
    if isinstance(stack, RecurrentEncoder) or stack.attention is None:
        return _RecurrentFlops(2 * each)
    keys, energy = stack.attention.key_proj, stack.attention.energy
    source = 0 if keys is None else keys.weight.numel()
    compared = stack.wiring.hidden_size if energy is None else energy.numel()
    pair = compared + stack.wiring.memory_width
    return _RecurrentFlops(2 * (each - source), 2 * source, 2 * pair)


def _network(network: FeedForward) -> int:
    """Operations of the feed-forward network for one position."""
    return 2 * (network.linear1.weight.numel() + network.linear2.weight.numel())
