"""
Conversion from and to torch's own Transformer blocks, to verify ours.

`torch.nn.MultiheadAttention`, `TransformerEncoder`, `TransformerDecoder` and `Transformer` are
converted to our blocks and back, with equal outputs and gradients. The result has a copy of the
weights, and the mode (training or evaluation) of the original.

Our masks are true where attention is allowed, and torch's masks are true where it is forbidden. Our
decoder applies the causal mask itself unless `causal_mask` is false, but torch's decoder needs
``tgt_mask``. The dropout of sub-layers and of attention weights is converted. Torch also applies
dropout inside the feed-forward network, but our blocks do not. So outputs are equal in evaluation;
in training they have the same distribution if this dropout is zero.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from torch import nn

from heedful.exchange.torch_block_parts import (
    ATTENTION,
    DECODER_LAYER,
    ENCODER_LAYER,
    attention_from_torch_reasons,
    attention_to_torch_reasons,
    copy_parameters,
    layer_from_torch_reasons,
    layer_names,
    layer_to_torch_reasons,
    norm_reasons,
    refuse,
    shape_of_torch,
)
from heedful.model.attention import MultiHeadAttention
from heedful.model.layers import Decoder, Encoder
from heedful.model.residual import PreNorm

_NORM = {"weight": "weight", "bias": "bias"}


class _Kind(NamedTuple):
    """The types of a stack and of its layers on both sides."""

    ours: type[Encoder | Decoder]
    theirs: type[Any]
    layer: type[Any]
    parts: Mapping[str, str]
    """Torch's names for the parts of our layer."""
    options: Mapping[str, Any] = {}
    """Arguments of torch's stack."""


_ENCODER = _Kind(
    Encoder,
    nn.TransformerEncoder,
    nn.TransformerEncoderLayer,
    ENCODER_LAYER,
    {"enable_nested_tensor": False},
)
_DECODER = _Kind(Decoder, nn.TransformerDecoder, nn.TransformerDecoderLayer, DECODER_LAYER)


def from_torch_attention(module: nn.MultiheadAttention) -> MultiHeadAttention:
    """
    Convert torch's attention to ours.

    Both sides keep W^Q, W^K and W^V stacked in one matrix.

    Raises `ExchangeError` if the inputs of keys or values differ in width from those of queries, or
    if torch's attention adds keys to the sequence.

    >>> import torch
    >>> theirs = torch.nn.MultiheadAttention(16, 4, batch_first=True)
    >>> ours = from_torch_attention(theirs)
    >>> x = torch.randn(1, 3, 16)
    >>> torch.allclose(ours(x, x)[0], theirs(x, x, x)[0], atol=1e-6)
    True
    """
    refuse("converting torch.nn.MultiheadAttention", attention_from_torch_reasons(module, "it"))
    ours = MultiHeadAttention(module.embed_dim, module.num_heads, dropout=module.dropout)
    copy_parameters(module, ours, _inverse(ATTENTION))
    return ours.train(module.training)


def to_torch_attention(
    attention: MultiHeadAttention, *, batch_first: bool = True
) -> nn.MultiheadAttention:
    """
    Convert our attention to torch's.

    Raises `ExchangeError` if torch's attention lacks a feature of ours, such as heads whose widths
    do not add up to d_model.
    """
    refuse("converting MultiHeadAttention", attention_to_torch_reasons(attention, "it"))
    dropout = 0.0 if attention.dropout is None else attention.dropout.probability
    theirs = nn.MultiheadAttention(
        attention.d_model, attention.heads, dropout, batch_first=batch_first
    )
    copy_parameters(attention, theirs, ATTENTION)
    return theirs.train(attention.training)


def from_torch_encoder(module: nn.TransformerEncoder) -> Encoder:
    """Convert torch's encoder and final norm to ours; `ExchangeError` lists missing features."""
    encoder: Encoder = _from_torch(module, _ENCODER)
    return encoder


def from_torch_decoder(module: nn.TransformerDecoder) -> Decoder:
    """Convert torch's decoder and final norm to ours; `ExchangeError` lists missing features."""
    decoder: Decoder = _from_torch(module, _DECODER)
    return decoder


def to_torch_encoder(encoder: Encoder, *, batch_first: bool = True) -> nn.TransformerEncoder:
    """Convert our encoder to torch's; `ExchangeError` lists missing features."""
    theirs: nn.TransformerEncoder = _to_torch(encoder, _ENCODER, batch_first)
    return theirs


def to_torch_decoder(decoder: Decoder, *, batch_first: bool = True) -> nn.TransformerDecoder:
    """Convert our decoder to torch's; `ExchangeError` lists missing features."""
    theirs: nn.TransformerDecoder = _to_torch(decoder, _DECODER, batch_first)
    return theirs


def from_torch_transformer(module: nn.Transformer) -> tuple[Encoder, Decoder]:
    """Convert torch's Transformer to our two stacks; `ExchangeError` lists missing features."""
    refuse(
        "converting torch.nn.Transformer",
        [
            *_from_torch_reasons(module.encoder, _ENCODER, "encoder"),
            *_from_torch_reasons(module.decoder, _DECODER, "decoder"),
        ],
    )
    return from_torch_encoder(module.encoder), from_torch_decoder(module.decoder)


def to_torch_transformer(
    encoder: Encoder, decoder: Decoder, *, batch_first: bool = True
) -> nn.Transformer:
    """
    Convert our two stacks to torch's Transformer; a stack without a final norm stays without it.

    Raises an `ExchangeError` that names everything in both stacks that torch cannot express.
    """
    reasons = [
        *_to_torch_reasons(encoder, ENCODER_LAYER, "encoder"),
        *_to_torch_reasons(decoder, DECODER_LAYER, "decoder"),
    ]
    refuse("converting Encoder and Decoder", reasons)
    attention = _self_attention(encoder)
    if attention.d_model != _self_attention(decoder).d_model:
        widths = f"{attention.d_model} and {_self_attention(decoder).d_model}"
        refuse("converting Encoder and Decoder", [f"their widths are {widths}"])
    # Torch's model initializes its weights randomly, so it is created without layers.
    theirs = nn.Transformer(attention.d_model, attention.heads, 0, 0, batch_first=batch_first)
    theirs.encoder = to_torch_encoder(encoder, batch_first=batch_first)
    theirs.decoder = to_torch_decoder(decoder, batch_first=batch_first)
    return theirs.train(encoder.training)


def _inverse(names: Mapping[str, str]) -> dict[str, str]:
    """Invert a table of names."""
    return {theirs: ours for ours, theirs in names.items()}


def _self_attention(stack: Encoder | Decoder) -> MultiHeadAttention:
    """Return the first layer's self-attention, which has the stack's width."""
    attention: MultiHeadAttention = stack.layers[0].self_attention  # type: ignore[assignment]
    return attention


def _from_torch(module: Any, kind: _Kind) -> Any:
    """Convert torch's stack to ours."""
    refuse(f"converting torch.nn.{kind.theirs.__name__}", _from_torch_reasons(module, kind, "it"))
    ours = kind.ours(shape_of_torch(module.layers[0]), len(module.layers))
    names = _inverse(layer_names(kind.parts))
    for old, new in zip(module.layers, ours.layers, strict=True):
        copy_parameters(old, new, names)
    ours.norm = nn.Identity() if module.norm is None else _copy_of(module.norm)
    return ours.train(module.training)


def _to_torch(stack: Encoder | Decoder, kind: _Kind, batch_first: bool) -> Any:
    """Convert our stack to torch's."""
    reasons = _to_torch_reasons(stack, kind.parts, "it")
    refuse(f"converting {kind.ours.__name__}", reasons)
    layers = [_torch_layer(layer, kind, batch_first) for layer in stack.layers]
    norm = _copy_of(stack.norm) if isinstance(stack.norm, nn.LayerNorm) else None
    theirs = kind.theirs(layers[0], 0, norm=norm, **kind.options)
    theirs.layers, theirs.num_layers = nn.ModuleList(layers), len(layers)
    return theirs.train(stack.training)


def _from_torch_reasons(stack: Any, kind: _Kind, path: str) -> Iterator[str]:
    """List reasons that prevent a conversion of torch's stack to ours."""
    if not isinstance(stack, kind.theirs):
        yield f"{path} is a {type(stack).__name__}, not a torch.nn.{kind.theirs.__name__}"
        return
    reasons = [
        reason
        for number, layer in enumerate(stack.layers)
        for reason in layer_from_torch_reasons(
            layer, kind.layer, kind.parts, f"{path}.layers.{number}"
        )
    ]
    yield from reasons
    if not stack.layers:
        yield f"{path} has no layers"
    elif not reasons and len({shape_of_torch(layer) for layer in stack.layers}) > 1:
        yield f"the layers of {path} differ in shape, dropout, activation or norm"
    if stack.norm is not None:
        yield from norm_reasons(stack.norm, f"{path}.norm")


def _to_torch_reasons(
    stack: Encoder | Decoder, parts: Mapping[str, str], path: str
) -> Iterator[str]:
    """List reasons that prevent a conversion of our stack to torch's."""
    if not len(stack.layers):
        yield f"{path} has no layers"
    if stack.window is not None:
        yield f"{path} attends within a window, which torch's layers can express only as a mask"
    if stack.score_bias is not None:
        bias = type(stack.score_bias).__name__
        yield f"{path}.score_bias is a {bias}, which torch's layers can express only as a mask"
    for number, layer in enumerate(stack.layers):
        yield from layer_to_torch_reasons(layer, parts, f"{path}.layers.{number}")  # type: ignore[arg-type]
    if not isinstance(stack.norm, nn.Identity):
        yield from norm_reasons(stack.norm, f"{path}.norm")


def _copy_of(norm: nn.LayerNorm) -> nn.LayerNorm:
    """Create a new norm with the same weights."""
    # Torch 2.11 declares the shape as a list, not as a tuple.
    new = nn.LayerNorm([*norm.normalized_shape], eps=norm.eps)
    copy_parameters(norm, new, _NORM)
    return new


def _torch_layer(layer: nn.Module, kind: _Kind, batch_first: bool) -> Any:
    """Create torch's layer from ours, with dropout only where ours has it."""
    ours: Any = layer  # a module whose sub-modules have no declared types
    theirs = kind.layer(
        ours.self_attention.d_model,
        ours.self_attention.heads,
        ours.feed_forward.linear1.out_features,
        activation=ours.feed_forward.activation,
        batch_first=batch_first,
        norm_first=isinstance(ours.self_residual, PreNorm),
    )
    theirs.dropout.p = 0.0
    for name, part in kind.parts.items():
        if name.endswith("attention"):
            attention = to_torch_attention(getattr(ours, name), batch_first=batch_first)
            setattr(theirs, part, attention)
        elif name.endswith("norm"):
            residual = getattr(ours, name.split(".")[0])
            getattr(theirs, part).eps = residual.norm.eps
            getattr(theirs, part.replace("norm", "dropout")).p = residual.dropout.probability
    copy_parameters(ours, theirs, layer_names(kind.parts))
    return theirs
