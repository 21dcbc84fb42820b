"""
The layers that compiled functions support.

The functions compute equation 1, score biases, rotary positions, feed-forward networks with or
without a gate, layer norm and RMS norm. If a model has any other part, searches use plain layers,
and `heedful info` names the part.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import nn

from heedful.kernels.api import NATIVE_ACTIVATIONS
from heedful.model.attention import MultiHeadAttention
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.feed_forward import ACTIVATIONS, FeedForward
from heedful.model.layers import Decoder, DecoderLayer, Encoder, EncoderLayer
from heedful.model.residual import PostNorm, PreNorm, ScaledNorm


def is_known(stack: Encoder | Decoder) -> bool:
    """Return whether the compiled functions support the layers of a stack."""
    return next(_obstacles(stack), "") == ""


def why_not_compiled(model: EncoderDecoder) -> str:
    """Return the first reason why a model has no compiled layers; empty if there is none."""
    for stack in (model.encoder, model.decoder):
        if not isinstance(stack, Encoder | Decoder):
            return f"{type(stack).__name__} has its own layers"
        if reason := next(_obstacles(stack), ""):
            return reason
    return ""


def _obstacles(stack: Encoder | Decoder) -> Iterator[str]:
    """Yield the reasons why the compiled functions do not support a stack."""
    layers: list[EncoderLayer | DecoderLayer] = [*stack.layers]
    # the functions support only equation 1; both attentions of a layer have the same scores and
    # norms
    for layer in layers:
        yield from _beyond_equation_1(layer.self_attention)
    if len({_first_angles(layer.self_attention) for layer in layers}) > 1:
        yield "layers have different rotations"
    last = stack.norm.norm if isinstance(stack.norm, ScaledNorm) else stack.norm
    is_closed = is_known_norm(last)
    if not (is_closed or isinstance(stack.norm, nn.Identity)):
        yield f"the last norm is {type(last).__name__}"
    for wiring in (part for part in stack.modules() if isinstance(part, PostNorm | PreNorm)):
        if not wiring.residual:
            yield "layers have no residual connections"
        if not is_known_norm(wiring.norm):
            yield f"layers have {type(wiring.norm).__name__}"
    networks = [layer.feed_forward for layer in layers]
    for network in networks:
        if not isinstance(network, FeedForward):
            yield f"layers have {type(network).__name__}"
    if native_activation(networks) is None:
        yield "the activation has no compiled function"
    is_post = all(isinstance(layer.feed_forward_residual, PostNorm) for layer in layers)
    if not (is_closed or is_post):
        yield "the stack has no final norm"


def _first_angles(own: nn.Module) -> tuple[float, ...]:
    """Return cosines and sines of position 1, which show whether two layers rotate alike."""
    rotation = own.rotation if isinstance(own, MultiHeadAttention) else None
    circle = None if rotation is None else rotation.circle(2)
    return () if circle is None else tuple(torch.cat([part[1] for part in circle]).tolist())


def _beyond_equation_1(own: nn.Module) -> Iterator[str]:
    """Yield the reasons why the compiled functions do not support a layer's self-attention."""
    if not isinstance(own, MultiHeadAttention):
        yield f"{type(own).__name__} replaces self-attention"
        return
    query_norm = None if own.norms is None else own.norms.query
    rotation = own.rotation
    if rotation is not None and rotation.circle(1) is not None:
        rotation = None  # compiled layers rotate, too
    for part in (own.scorer, query_norm, rotation, own.relation):
        if part is not None:
            yield f"attention has {type(part).__name__}"
    if own.kv_heads != own.heads:
        yield "heads share keys"
    if own.energy is not None:
        yield f"scores are {own.score}"


def is_known_norm(norm: nn.Module) -> bool:
    """Return whether the compiled functions support a norm."""
    if isinstance(norm, nn.RMSNorm):
        return norm.weight is not None
    return isinstance(norm, nn.LayerNorm) and norm.bias is not None


def native_activation(networks: Sequence[nn.Module]) -> str | None:
    """Return the activation's name; None if networks have different or unsupported activations."""
    functions = {network.activation for network in networks if isinstance(network, FeedForward)}
    names = [name for name in NATIVE_ACTIVATIONS if ACTIVATIONS[name] in functions]
    return names[0] if len(names) == len(functions) == 1 else None
