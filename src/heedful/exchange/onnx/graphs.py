"""
The encoder graph and the decoder-step graph, in ONNX operators.

::

    source ──> encoder ──> memory_keys, memory_values, mask
                                     │
    tokens, past_keys, past_values ──┴──> step ──> log_probabilities, keys, values

Every tensor has one row for each hypothesis, so a search selects hypotheses by selecting rows. Keys
and values of all layers are stored in two tensors (rows, layers, heads, length, width); each step
takes the tensors that the previous step returned. Before the first token their length is 0.

The operators follow figure 1 of the paper. They are not traced from torch, because tracing takes a
minute for the base model and depends on the version of torch. The comparison at the end of an
export checks that the results are equal.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from torch import Tensor, nn

from heedful.exchange.onnx.nodes import Nodes
from heedful.exchange.torch_block_parts import activation_name
from heedful.model.attention import MultiHeadAttention
from heedful.model.embedding import (
    NoPositions,
    Positions,
    SinusoidalPositions,
    TokenEmbedding,
    code_rates,
    paper_rates,
)
from heedful.model.feed_forward import FeedForward
from heedful.model.layers import DecoderLayer, EncoderLayer
from heedful.model.relations import Rotation
from heedful.model.residual import PreNorm
from heedful.model.transformer import Transformer

# Angular frequencies by layout, in double precision.
_RATES = {"interleaved": paper_rates, "halves": code_rates, "grouped": paper_rates}

_NEVER = np.array(-np.inf, dtype=np.float32)


class _Circle(NamedTuple):
    """Cosines and sines by which queries and keys are rotated: (time, d_k / 2) each."""

    cosines: str
    sines: str
    half: int
    """Number of pairs in a head."""


def encoder_nodes(model: Transformer) -> Nodes:
    """Build the encoder graph, including keys and values for every cross-attention."""
    nodes = Nodes()
    nodes.place = "source"
    padded = nodes.add("Equal", "source", nodes.constant(np.int64(model.padding)))
    nodes.add("Not", padded, out="memory_mask")
    mask = nodes.add("Unsqueeze", "memory_mask", nodes.constant([1, 2]))
    x = _embed(nodes, model.embed_source, "source")
    length = _size(nodes, "source", 1)
    zero = nodes.constant(np.int64(0))
    x = nodes.add("Add", x, _positions(nodes, model.source_positions, zero, length))
    circle = _circle(nodes, model.encoder.layers[0], zero, length)
    for number, layer in enumerate(model.encoder.layers):
        nodes.place = f"encoder.layers.{number}"
        x = _encoder_layer(nodes, layer, x, mask, circle)
    nodes.place = "encoder"
    x = _norm(nodes, model.encoder.norm, x)
    offered = []
    for number, reader in enumerate(model.decoder.layers):
        nodes.place = f"decoder.layers.{number}.cross_attention"
        offered.append(_project(nodes, reader.cross_attention, x, 1, 3))
    _stack(nodes, [keys for keys, _ in offered], "memory_keys")
    _stack(nodes, [values for _, values in offered], "memory_values")
    return nodes


def step_nodes(model: Transformer) -> Nodes:
    """Build the graph of `Transformer.step`, with one row per hypothesis."""
    nodes = Nodes()
    nodes.place = "target"
    mask = nodes.add("Unsqueeze", "memory_mask", nodes.constant([1, 2]))
    tokens = nodes.add("Unsqueeze", "tokens", nodes.constant([1]))
    x = _embed(nodes, model.embed_target, tokens)
    here = _size(nodes, "past_keys", 3)
    after = nodes.add("Add", here, nodes.constant(np.int64(1)))
    x = nodes.add("Add", x, _positions(nodes, model.target_positions, here, after))
    circle = _circle(nodes, model.decoder.layers[0], here, after)
    known: list[tuple[str, str]] = []
    for number, layer in enumerate(model.decoder.layers):
        nodes.place = f"decoder.layers.{number}"
        x = _decoder_layer(nodes, layer, x, number, mask, circle, known)
    nodes.place = "output"
    x = nodes.add("Squeeze", _norm(nodes, model.decoder.norm, x), nodes.constant([1]))
    table, bias = model.output.weight, model.output.bias
    factors = [x, nodes.weight(table)] + ([] if bias is None else [nodes.weight(bias)])
    nodes.add("LogSoftmax", nodes.add("Gemm", *factors, transB=1), axis=-1, out="log_probabilities")
    _stack(nodes, [keys for keys, _ in known], "keys")
    _stack(nodes, [values for _, values in known], "values")
    return nodes


def _encoder_layer(
    nodes: Nodes, layer: EncoderLayer, x: str, mask: str, circle: _Circle | None
) -> str:
    """Build an encoder layer: self-attention, then a feed-forward network."""

    def self_attend(states: str) -> str:
        query, keys, values = _project(nodes, layer.self_attention, states, 0, 3)
        query, keys = _rotate(nodes, query, circle), _rotate(nodes, keys, circle)
        return _attend(nodes, layer.self_attention, query, keys, values, mask)

    x = _residual(nodes, layer.self_residual, x, self_attend)
    return _feed_forward(nodes, layer, x)


def _decoder_layer(
    nodes: Nodes,
    layer: DecoderLayer,
    x: str,
    number: int,
    mask: str,
    circle: _Circle | None,
    memory_names: list[tuple[str, str]],
) -> str:
    """Build a decoder layer, which extends the cached keys, rotated if at all, and values."""
    index = nodes.constant(np.int64(number))

    def of_layer(name: str) -> str:
        return nodes.add("Gather", name, index, axis=1)

    def self_attend(states: str) -> str:
        query, new_keys, new_values = _project(nodes, layer.self_attention, states, 0, 3)
        query, new_keys = _rotate(nodes, query, circle), _rotate(nodes, new_keys, circle)
        keys = nodes.add("Concat", of_layer("past_keys"), new_keys, axis=2)
        values = nodes.add("Concat", of_layer("past_values"), new_values, axis=2)
        memory_names.append((keys, values))
        return _attend(nodes, layer.self_attention, query, keys, values, None)

    def cross_attend(states: str) -> str:
        (query,) = _project(nodes, layer.cross_attention, states, 0, 1)
        memory = of_layer("memory_keys"), of_layer("memory_values")
        return _attend(nodes, layer.cross_attention, query, *memory, mask)

    x = _residual(nodes, layer.self_residual, x, self_attend)
    x = _residual(nodes, layer.cross_residual, x, cross_attend)
    return _feed_forward(nodes, layer, x)


def _embed(nodes: Nodes, embedding: TokenEmbedding, ids: str) -> str:
    """Look up and scale embeddings: (rows, time) -> (rows, time, d_model)."""
    x = nodes.add("Gather", nodes.weight(embedding.weight), ids, axis=0)
    if embedding.scale != 1.0:
        x = nodes.add("Mul", x, nodes.constant(np.float32(embedding.scale)))
    if embedding.zero_token is not None:
        is_zero = nodes.add("Equal", ids, nodes.constant(np.int64(embedding.zero_token)))
        is_zero = nodes.add("Unsqueeze", is_zero, nodes.constant([2]))
        x = nodes.add("Where", is_zero, nodes.constant(np.float32(0.0)), x)
    return x


def _positions(nodes: Nodes, positions: Positions, first: str, end: str) -> str:
    """Compute the encodings of a range of positions, which has no upper limit."""
    if isinstance(positions, NoPositions):
        return nodes.constant(np.float32(0.0))
    numbers = nodes.add("Range", first, end, nodes.constant(np.int64(1)))
    if not isinstance(positions, SinusoidalPositions):
        last = nodes.constant(np.int64(positions.weight.size(0) - 1))
        numbers = nodes.add("Min", numbers, last)
        return nodes.add("Gather", nodes.weight(positions.weight), numbers, axis=0)
    numbers = nodes.add("Add", numbers, nodes.constant(np.int64(positions.position_offset)))
    angles = _angles(nodes, numbers, _RATES[positions.layout](positions.d_model))
    waves = [nodes.add(kind, angles) for kind in ("Sin", "Cos")]
    if positions.layout == "interleaved":
        waves = [nodes.add("Unsqueeze", wave, nodes.constant([2])) for wave in waves]
        both = nodes.add("Concat", *waves, axis=2)
        table = nodes.add("Reshape", both, nodes.constant([-1, positions.d_model]))
    else:
        table = nodes.add("Concat", *waves, axis=1)
    return nodes.add("Cast", table, to=nodes.types.FLOAT)


def _angles(nodes: Nodes, numbers: str, rates: Tensor) -> str:
    """Multiply positions by the rates of all angles, in double precision as in torch."""
    column = nodes.add("Cast", numbers, to=nodes.types.DOUBLE)
    column = nodes.add("Unsqueeze", column, nodes.constant([1]))
    return nodes.add("Mul", column, nodes.constant(rates.numpy()))


def _circle(nodes: Nodes, layer: nn.Module, first: str, end: str) -> _Circle | None:
    """Compute the rotation of a range of positions, the same in all layers; None without one."""
    attention: MultiHeadAttention = layer.self_attention  # type: ignore[assignment]
    rotation: Rotation | None = attention.rotation
    if rotation is None:
        return None
    rates = rotation.rates()
    assert rates is not None  # other rotations were refused before
    angles = _angles(nodes, nodes.add("Range", first, end, nodes.constant(np.int64(1))), rates)
    cosines, sines = (
        nodes.add("Cast", nodes.add(kind, angles), to=nodes.types.FLOAT) for kind in ("Cos", "Sin")
    )
    return _Circle(cosines, sines, len(rates))


def _rotate(nodes: Nodes, x: str, circle: _Circle | None) -> str:
    """Rotate numbers j and j + half of each head as a pair: (rows, heads, time, d_k)."""
    if circle is None:
        return x
    low, high = _halves(nodes, x, 3, circle.half)

    def turn(kind: str, by_cosines: str, by_sines: str) -> str:
        products = (
            nodes.add("Mul", by_cosines, circle.cosines),
            nodes.add("Mul", by_sines, circle.sines),
        )
        return nodes.add(kind, *products)

    return nodes.add("Concat", turn("Sub", low, high), turn("Add", high, low), axis=3)


def _halves(nodes: Nodes, x: str, axis: int, half: int) -> tuple[str, str]:
    """Split an axis into halves."""
    axes, bounds = nodes.constant([axis]), [nodes.constant([n * half]) for n in range(3)]
    low, high = (nodes.add("Slice", x, bounds[n], bounds[n + 1], axes) for n in range(2))
    return low, high


def _project(
    nodes: Nodes, attention: MultiHeadAttention, x: str, first: int, last: int
) -> list[str]:
    """
    Multiply by some of W^Q, W^K and W^V and split into heads: (rows, heads, time, d) each.

    Keys and values have `kv_heads` heads.
    """
    parts = []
    for number in range(first, last):
        heads = attention.kv_heads if number else attention.heads
        shape = nodes.constant([0, 0, heads, -1])
        start = sum(attention.widths[:number])
        part = slice(start, start + attention.widths[number])
        bias = attention.qkv_proj.bias
        product = _linear(
            nodes, x, attention.qkv_proj.weight[part], None if bias is None else bias[part]
        )
        product = nodes.add("Reshape", product, shape)
        parts.append(nodes.add("Transpose", product, perm=[0, 2, 1, 3]))
    return parts


def _attend(
    nodes: Nodes,
    attention: MultiHeadAttention,
    query: str,
    keys: str,
    values: str,
    mask: str | None,
) -> str:
    """Build equation 1 of the paper, softmax(Q K^T / sqrt(d_k)) V, for all heads, and W^O."""
    if attention.score == "scaled":
        scale = nodes.constant(np.float32(1.0 / math.sqrt(attention.d_k)))
        query = nodes.add("Mul", query, scale)
    is_grouped = attention.kv_heads != attention.heads
    if is_grouped:  # the queries of a group are rows of one head
        shape = nodes.constant([0, attention.kv_heads, -1, attention.d_k])
        query = nodes.add("Reshape", query, shape)
    transposed = nodes.add("Transpose", keys, perm=[0, 1, 3, 2])
    scores = nodes.add("MatMul", query, transposed)
    if mask is not None:
        scores = nodes.add("Where", mask, scores, nodes.constant(_NEVER))
    context = nodes.add("MatMul", nodes.add("Softmax", scores, axis=-1), values)
    if is_grouped:
        shape = nodes.constant([0, attention.heads, -1, attention.d_v])
        context = nodes.add("Reshape", context, shape)
    # The heads are concatenated.
    together = nodes.add("Transpose", context, perm=[0, 2, 1, 3])
    width = attention.heads * attention.d_v
    together = nodes.add("Reshape", together, nodes.constant([0, 0, width]))
    out = attention.out_proj
    return _linear(nodes, together, out.weight, out.bias)


def _feed_forward(nodes: Nodes, layer: EncoderLayer | DecoderLayer, x: str) -> str:
    """Build equation 2 of the paper, perhaps gated, and its residual connection."""
    network = layer.feed_forward
    assert isinstance(network, FeedForward)  # other networks were refused before
    first, second = network.linear1, network.linear2
    activate = _ACTIVATIONS[activation_name(network.activation) or ""]

    def transform(states: str) -> str:
        inner = _linear(nodes, states, first.weight, first.bias)
        if network.gated:
            gate, value = _halves(nodes, inner, 2, second.in_features)
            inner = nodes.add("Mul", activate(nodes, gate), value)
        else:
            inner = activate(nodes, inner)
        return _linear(nodes, inner, second.weight, second.bias)

    return _residual(nodes, layer.feed_forward_residual, x, transform)


def _residual(nodes: Nodes, wiring: nn.Module, x: str, sublayer: Callable[[str], str]) -> str:
    """Build the residual connection of `heedful.model.residual`."""
    norm: nn.Module = wiring.norm  # type: ignore[assignment]
    if isinstance(wiring, PreNorm):
        return nodes.add("Add", x, sublayer(_norm(nodes, norm, x)))
    return _norm(nodes, norm, nodes.add("Add", x, sublayer(x)))


def _norm(nodes: Nodes, norm: nn.Module, x: str) -> str:
    """Build a layer norm, or a norm by root mean squares; an identity stays an identity."""
    if isinstance(norm, nn.RMSNorm):  # this operator set has no such norm
        assert norm.eps is not None
        mean = nodes.add("ReduceMean", nodes.add("Mul", x, x), nodes.constant([-1]))
        root = nodes.add("Sqrt", nodes.add("Add", mean, nodes.constant(np.float32(norm.eps))))
        return nodes.add("Mul", nodes.add("Div", x, root), nodes.weight(norm.weight))
    if not isinstance(norm, nn.LayerNorm):
        return x
    parts = [nodes.weight(part) for part in (norm.weight, norm.bias) if part is not None]
    return nodes.add("LayerNormalization", x, *parts, axis=-1, epsilon=norm.eps)


def _linear(nodes: Nodes, x: str, weight: Tensor, bias: Tensor | None) -> str:
    """Multiply by a weight stored as (out, in), and add the bias."""
    x = nodes.add("MatMul", x, nodes.weight(weight.t()))
    return x if bias is None else nodes.add("Add", x, nodes.weight(bias))


def _stack(nodes: Nodes, parts: list[str], out: str) -> None:
    """Stack the outputs of all layers."""
    nodes.place = out
    apart = [nodes.add("Unsqueeze", part, nodes.constant([1])) for part in parts]
    nodes.add("Concat", *apart, axis=1, out=out)


def _size(nodes: Nodes, name: str, axis: int) -> str:
    """Return the length of an axis."""
    size = nodes.add("Shape", name, start=axis, end=axis + 1)
    return nodes.add("Squeeze", size, nodes.constant([0]))


def _gelu(nodes: Nodes, x: str) -> str:
    """Compute x Phi(x); the opset used here has no Gelu operator."""
    inner = nodes.add("Erf", nodes.add("Mul", x, nodes.constant(np.float32(math.sqrt(0.5)))))
    return _half_times_one_plus(nodes, x, inner)


def _gelu_tanh(nodes: Nodes, x: str) -> str:
    """Compute the tanh approximation of GELU."""
    cube = nodes.add("Mul", x, nodes.add("Mul", x, x))
    cube = nodes.add("Mul", cube, nodes.constant(np.float32(0.044715)))
    inner = nodes.add("Add", x, cube)
    inner = nodes.add("Mul", inner, nodes.constant(np.float32(math.sqrt(2.0 / math.pi))))
    return _half_times_one_plus(nodes, x, nodes.add("Tanh", inner))


def _half_times_one_plus(nodes: Nodes, x: str, inner: str) -> str:
    """Compute x (1 + inner) / 2, the last step of both GELUs."""
    inner = nodes.add("Add", inner, nodes.constant(np.float32(1.0)))
    half = nodes.add("Mul", x, nodes.constant(np.float32(0.5)))
    return nodes.add("Mul", half, inner)


_ACTIVATIONS: dict[str, Callable[[Nodes, str], str]] = {
    "relu": lambda nodes, x: nodes.add("Relu", x),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": lambda nodes, x: nodes.add("Mul", x, nodes.add("Sigmoid", x)),
}
