"""
Encoder and decoder in 8 bits, with one compiled function between every two products.

In the plain modules a product of 8-bit integers is followed by a dozen short passes over memory:
scale, add the bias, add the residual, normalise, find the largest number of each row, round. Here
they are one pass (`heedful.model.native`), and attention reads its keys and values where they lie.
The result is that of the plain modules up to rounding; the tests hold the two together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.model.attention import KeysAndValues
from heedful.model.cache import TokenCache, bias_of
from heedful.model.feed_forward import ACTIVATIONS
from heedful.model.layouts import Int8Linear, PackedAttention
from heedful.model.native.compile import native_library
from heedful.model.native.steps import NativeSteps, Norm
from heedful.model.stacks import Decoder, DecoderLayer, Encoder, EncoderLayer

# Beyond so many positions attention as batched products is quicker than row by row.
_LONG = 256


@dataclass(frozen=True)
class _Products:
    """The products of a layer in the order in which a step takes them."""

    project: Int8Linear
    mix: Int8Linear
    ask: Int8Linear
    mix_source: Int8Linear
    widen: Int8Linear
    narrow: Int8Linear


def can_be_quick(stack: Encoder | Decoder) -> bool:
    """
    Tell whether what stands between the products of a stack can be compiled.

    Parameters
    ----------
    stack : Encoder or Decoder
        Laid out in 8 bits.

    Returns
    -------
    bool
        False without a compiler, and for activations other than the paper's.

    Notes
    -----
    Whoever gets False has the plain modules, which compute the same.
    """
    layers = [one for one in stack.layers if isinstance(one, EncoderLayer | DecoderLayer)]
    relu = all(layer.feed_forward.activation is ACTIVATIONS["relu"] for layer in layers)
    return relu and native_library("steps") is not None


class QuickDecoder(Decoder):
    """
    Step as `Decoder` does, in fewer passes.

    Parameters
    ----------
    plain : Decoder
        Laid out in 8 bits; its modules are used and stay as they are.

    Notes
    -----
    Whole targets (`forward`) go through the plain modules.
    """

    def __init__(self, plain: Decoder) -> None:
        nn.Module.__init__(self)
        self.layers, self.norm = plain.layers, plain.norm
        layers = [layer for layer in plain.layers if isinstance(layer, DecoderLayer)]
        residuals: list[nn.Module] = []
        for layer in layers:
            residuals += (layer.self_residual, layer.cross_residual, layer.feed_forward_residual)
        self.first, self.norms = _norms(residuals, plain.norm)
        self.pre = self.first is not None
        self.products = [_products(layer) for layer in layers]
        self.native = NativeSteps(self.products[0].project.levels)

    def step(
        self,
        x: Float[Tensor, "sentences width d_model"],
        past: TokenCache,
        memory: Sequence[KeysAndValues],
        barred: Float[Tensor, "sentences 1 1 source"],
    ) -> Float[Tensor, "sentences width d_model"]:
        """
        Read one more token for each hypothesis with all layers.

        Parameters
        ----------
        x : Tensor of float, shape (sentences, width, d_model)
            The newest tokens, embedded, with their positions.
        past : TokenCache
            With slots for these tokens, which are written; in bf16.
        memory : sequence of KeysAndValues
            What the source offers to each layer, in bf16.
        barred : Tensor of float, shape (sentences, 1, 1, source)
            Minus infinity where the source is padding, else zero.

        Returns
        -------
        Tensor of float, shape (sentences, width, d_model)
            They predict the next token.

        Notes
        -----
        Section 3.1, decoder: self-attention, attention to the memory, feed-forward network.
        """
        native, norms = self.native, iter(self.norms)
        states = x.flatten(0, 1).clone()
        normal = states.new_empty(states.shape) if self.pre else None
        own, source = past.bias.float(), barred.flatten(1, 2).float()
        now = native.round(states if self.first is None else self.first(states))
        for index, at in enumerate(self.products):
            product = at.project.multiply(now.bytes)
            kept = past.layers[index]
            found = native.attend(product, now, at.project.bias, *kept, own, past.filled, True)
            product = at.mix.multiply(found.bytes)
            now = native.add_norm(product, found, at.mix.bias, states, next(norms), self.pre)

            product, length = at.ask.multiply(now.bytes), source.size(2)
            found = native.attend(product, now, at.ask.bias, *memory[index], source, length, False)
            product, bias = at.mix_source.multiply(found.bytes), at.mix_source.bias
            now = native.add_norm(product, found, bias, states, next(norms), self.pre)

            found = native.relu(at.widen.multiply(now.bytes), now, at.widen.bias)
            product, bias = at.narrow.multiply(found.bytes), at.narrow.bias
            now = native.add_norm(product, found, bias, states, next(norms), self.pre, normal)
        return (states if normal is None else normal).view(x.shape)


class QuickEncoder(Encoder):
    """
    Read as `Encoder` does, in fewer passes.

    Parameters
    ----------
    plain : Encoder
        Laid out in 8 bits; its modules are used and stay as they are.

    Notes
    -----
    Texts whose attention weights are asked for, and very long ones, go through the plain modules.
    """

    def __init__(self, plain: Encoder) -> None:
        nn.Module.__init__(self)
        self.layers, self.norm = plain.layers, plain.norm
        layers = [layer for layer in plain.layers if isinstance(layer, EncoderLayer)]
        residuals: list[nn.Module] = []
        for layer in layers:
            residuals += (layer.self_residual, layer.feed_forward_residual)
        self.first, self.norms = _norms(residuals, plain.norm)
        self.pre = self.first is not None
        self.heads = layers[0].self_attention
        self.products = [_encoder_products(layer) for layer in layers]
        self.native = NativeSteps(self.products[0][0].levels)

    def forward(
        self,
        x: Float[Tensor, "batch time d_model"],
        may_attend: Bool[Tensor, "batch 1 1 time"] | None = None,
        weights: list[Tensor] | None = None,
    ) -> Float[Tensor, "batch time d_model"]:
        """
        Run all layers.

        Parameters
        ----------
        x : Tensor of float, shape (batch, time, d_model)
            Embedded tokens with their positions.
        may_attend : Tensor of bool, shape (batch, 1, 1, time), optional
            True at real tokens.
        weights : list, optional
            Collects the attention weights (batch, heads, time, time), one tensor a layer.

        Returns
        -------
        Tensor of float, shape (batch, time, d_model)
            The memory.

        Notes
        -----
        All positions of a sentence are queries of its own positions.
        """
        batch, time = x.shape[:2]
        if weights is not None or time > _LONG:
            return super().forward(x, may_attend, weights)
        native, norms, heads = self.native, iter(self.norms), self.heads
        states = x.flatten(0, 1).clone()
        normal = states.new_empty(states.shape) if self.pre else None
        if may_attend is None:
            may_attend = torch.ones(batch, 1, 1, time, dtype=torch.bool)
        barred = bias_of(may_attend, torch.float32).flatten(1, 2)
        keys = torch.empty(batch, heads.heads, time, heads.d_k, dtype=torch.bfloat16)
        values = torch.empty(batch, heads.heads, time, heads.d_v, dtype=torch.bfloat16)
        now = native.round(states if self.first is None else self.first(states))
        for project, mix, widen, narrow in self.products:
            product = project.multiply(now.bytes)
            found = native.attend(product, now, project.bias, keys, values, barred, time, True)
            product = mix.multiply(found.bytes)
            now = native.add_norm(product, found, mix.bias, states, next(norms), self.pre)
            found = native.relu(widen.multiply(now.bytes), now, widen.bias)
            product = narrow.multiply(found.bytes)
            now = native.add_norm(
                product, found, narrow.bias, states, next(norms), self.pre, normal
            )
        return (states if normal is None else normal).view(x.shape)


class QuickOutput(nn.Module):
    """
    Multiply states by the output table and take the logarithm of the softmax.

    Parameters
    ----------
    projection : Int8Linear
        The table, laid out.

    Notes
    -----
    `heedful.model.seq2seq.Seq2Seq.log_probabilities`.
    """

    def __init__(self, projection: Int8Linear) -> None:
        super().__init__()
        self.projection = projection
        self.native = NativeSteps(projection.levels)

    def forward(self, states: Float[Tensor, "rows d_model"]) -> Float[Tensor, "rows vocabulary"]:
        """
        Compute log-probabilities.

        Parameters
        ----------
        states : Tensor of float32, shape (rows, d_model)
            What `step` returned.

        Returns
        -------
        Tensor of float32, shape (rows, vocabulary)
            Natural logarithms.

        Notes
        -----
        Two passes over the vocabulary after the product.
        """
        rounded = self.native.round(states.contiguous())
        bias = self.projection.bias if self.projection.has_bias else None
        product = self.projection.multiply(rounded.bytes)
        return self.native.log_softmax(product, rounded, bias)


def _norms(
    residuals: Sequence[nn.Module], last: nn.Module
) -> tuple[nn.LayerNorm | None, list[Norm]]:
    """
    Find what normalises the first states, if anything, and after each sub-layer.

    In a stack that normalises before its sub-layers, what follows a sub-layer is the norm of the
    next one, and the stack's own after the last.
    """
    norms = [one for residual in residuals for one in residual.children()]
    found = [one for one in (*norms, last) if isinstance(one, nn.LayerNorm)]
    first = None
    if isinstance(last, nn.LayerNorm):
        first, *found = found
    return first, [Norm(one.weight.detach(), one.bias.detach(), one.eps) for one in found]


def _int8(modules: Sequence[object]) -> list[Int8Linear]:
    """Make sure that these are products in 8 bits."""
    found = [one for one in modules if isinstance(one, Int8Linear)]
    assert len(found) == len(modules)
    return found


def _products(layer: DecoderLayer) -> _Products:
    """Find the products of a layer."""
    own, cross, network = layer.self_attention, layer.cross_attention, layer.feed_forward
    assert isinstance(own, PackedAttention)
    assert isinstance(cross, PackedAttention)
    # the last part of attention to the source makes its keys and values, once a sentence
    asking = [*list(cross.parts.values())[:1], cross.project_out]
    found = [*own.parts.values(), own.project_out, *asking, network.widen, network.narrow]
    return _Products(*_int8(found))


def _encoder_products(layer: EncoderLayer) -> list[Int8Linear]:
    """Find the products of a layer in their order."""
    own, network = layer.self_attention, layer.feed_forward
    assert isinstance(own, PackedAttention)
    return _int8([*own.parts.values(), own.project_out, network.widen, network.narrow])
