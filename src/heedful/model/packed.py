"""
A Transformer over packed sentences, one after the other, for a training step on a GPU.

The layers are those of `heedful.model.layers`. Only positional encodings and attention depend on
where a sentence starts. So no padding is computed, and all shapes stay the same from step to step.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.kernels.api import UP_TO_ITSELF, PackedRows, fuse_kernels, lookup
from heedful.model.attention import MultiHeadAttention
from heedful.model.contracts import DecoderInput, Seq2Seq
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.feed_forward import FeedForward
from heedful.model.layers import Decoder, Encoder
from heedful.model.layout import Layout
from heedful.model.parts import PaddedNorm
from heedful.model.window import Window

# Maximum width of a head in torch's kernel.
_WIDEST = 256
# The methods of a model that `packed_states` replaces.
_OF_STATES = ("states", "encode", "decode", "_add_positions")


class PackedSide(NamedTuple):
    """One side of a batch."""

    ids: Int[Tensor, "1 tokens"]
    """The ids of all sentences."""
    places: Int[Tensor, " tokens"]
    """Position of each token in its sentence."""
    rows: PackedRows
    """Starts of the sentences."""


Run = Callable[..., Any]
"""Calls a function with arguments, with or without compilation."""


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function without compiling it."""
    return function(*arguments)


@fuse_kernels()
def packed_states(
    model: EncoderDecoder, source: PackedSide, target_in: PackedSide, run: Run = call
) -> Float[Tensor, "1 tokens d_model"]:
    """Compute `EncoderDecoder.states` without padding; `run` calls each layer and norm."""
    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, Encoder)  # `why_not_packed` has checked both types
    assert isinstance(decoder, Decoder)
    x = _embed(model, source, False, run)
    rows = _within(source.rows, encoder.window)
    layout = Layout(rows=(rows, rows), numbers=source.places)
    for layer in encoder.layers:
        x = run(apply_layer, layer, x, layout)
    memory = run(apply_layer, encoder.norm, x)
    y = _embed(model, target_in, True, run)
    rows = target_in.rows
    own = rows._replace(window=UP_TO_ITSELF) if decoder.causal else rows
    own = _within(own, decoder.window)
    layout = Layout(rows=(own, own), numbers=target_in.places)
    cross = Layout(rows=(rows, source.rows))
    for decoder_layer in decoder.layers:
        y = run(apply_layer, decoder_layer, y, memory, layout, cross)
    out: Tensor = run(apply_layer, decoder.norm, y)
    return out


def apply_layer(layer: nn.Module, *arguments: Any) -> Any:
    """Apply a layer."""
    return layer(*arguments)


def _embed(model: EncoderDecoder, side: PackedSide, is_target: bool, run: Run) -> Tensor:
    """Look up tokens, and add the encodings of their positions in their sentences."""
    embed = model.embed_target if is_target else model.embed_source
    positions = model.target_positions if is_target else model.source_positions
    # tables are read outside compiled code, because their gradients look up torch functions
    x: Tensor = embed(side.ids)
    if positions is None:
        return x
    # `lookup` is used because thousands of tokens have the same position
    encodings = lookup(side.places.unsqueeze(0), positions(0, side.rows.longest))
    norm = model.target_norm if is_target else model.source_norm
    out: Tensor = run(_add_and_thin, model.dropout, norm, x, encodings)
    return out


def _add_and_thin(dropout: nn.Module, norm: nn.Module | None, x: Tensor, encodings: Tensor) -> Any:
    """Add positions, normalize if the model does, and apply dropout (section 5.4)."""
    x = x + encodings
    return dropout(x if norm is None else norm(x))


def _within(rows: PackedRows, window: Window | None) -> PackedRows:
    return rows if window is None else rows._replace(window=(window.before, window.after))


def why_not_packed(model: Seq2Seq) -> str:
    """Return the first reason why a model needs padded rows; empty if there is none."""
    return next(_obstacles(model), "")


def _obstacles(model: Seq2Seq) -> Iterator[str]:
    """Yield the reasons why the parts of a model need padded rows."""
    if not isinstance(model, EncoderDecoder) or any(
        getattr(type(model), name) is not getattr(EncoderDecoder, name) for name in _OF_STATES
    ):
        yield f"{type(model).__name__} computes its states in its own way"
        return
    if type(model).penalty is not EncoderDecoder.penalty:
        yield f"{type(model).__name__} adds a term to the loss"
    if type(model.decoder_input) is not DecoderInput:
        yield f"{type(model.decoder_input).__name__} reads padded rows"
    for stack, kind in ((model.encoder, Encoder), (model.decoder, Decoder)):
        if type(stack) is not kind:
            yield f"{type(stack).__name__} is not the {kind.__name__.lower()} of a Transformer"
            continue
        if stack.score_bias is not None:
            bias = type(stack.score_bias).__name__
            yield f"{bias} is added to the scores and so needs padded rows"
        for layer in stack.layers:
            if type(layer.self_attention) is not MultiHeadAttention:
                yield f"{type(layer.self_attention).__name__} mixes padded rows"
            if type(layer.feed_forward) is not FeedForward:
                yield f"{type(layer.feed_forward).__name__} replaces a feed-forward network"
        for part in stack.modules():
            yield from _obstacles_in(part)


def _obstacles_in(part: nn.Module) -> Iterator[str]:
    """Yield the reasons why one part needs padded rows."""
    if isinstance(part, PaddedNorm):
        yield f"{type(part).__name__} has to know which positions are padding"
    if hasattr(part, "penalty"):
        yield f"{type(part).__name__} adds a term to the loss"
    if isinstance(part, MultiHeadAttention):
        if part.dropout is not None:
            yield "dropout of attention weights needs padded rows"
        if part.relation is not None:
            yield f"{type(part.relation).__name__} changes the scores and so needs padded rows"
        if part.compare is not None:
            yield f"the attention score “{part.score}” is not a dot product"
        if part.d_k != part.d_v or part.d_k % 8 or part.d_k > _WIDEST:
            yield (
                f"heads need queries and values of the same width, a multiple of 8 up to "
                f"{_WIDEST}, but have {part.d_k} and {part.d_v}"
            )
