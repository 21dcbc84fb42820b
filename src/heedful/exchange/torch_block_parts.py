"""
Parameter names of torch's layers, and differences that prevent a conversion.

Both sides keep the same matrices in the same order, so nothing has to be transposed: a conversion
copies parameters by name. If the original has no bias, the bias of the copy is removed.
"""

from collections.abc import Iterable, Iterator, Mapping

from torch import nn

from heedful.exchange.formats import Problems
from heedful.model.attention import MultiHeadAttention
from heedful.model.feed_forward import ACTIVATIONS, FeedForward
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import DecoderLayer, EncoderLayer
from heedful.model.residual import RESIDUALS

TorchLayer = nn.TransformerEncoderLayer | nn.TransformerDecoderLayer
OurLayer = EncoderLayer | DecoderLayer

ATTENTION = {
    "qkv_proj.weight": "in_proj_weight",
    "qkv_proj.bias": "in_proj_bias",
    "out_proj.weight": "out_proj.weight",
    "out_proj.bias": "out_proj.bias",
}
"""Torch's names for the parameters of our attention."""
ENCODER_LAYER = {
    "self_attention": "self_attn",
    "self_residual.norm": "norm1",
    "feed_forward.linear1": "linear1",
    "feed_forward.linear2": "linear2",
    "feed_forward_residual.norm": "norm2",
}
"""Torch's names for the parts of our encoder layer."""
DECODER_LAYER = {
    "self_attention": "self_attn",
    "self_residual.norm": "norm1",
    "cross_attention": "multihead_attn",
    "cross_residual.norm": "norm2",
    "feed_forward.linear1": "linear1",
    "feed_forward.linear2": "linear2",
    "feed_forward_residual.norm": "norm3",
}
"""Torch's names for the parts of our decoder layer."""


def layer_names(parts: Mapping[str, str]) -> dict[str, str]:
    """Map the names of a layer's parameters to torch's; attention has those in `ATTENTION`."""
    plain = {"weight": "weight", "bias": "bias"}
    return {
        f"{ours}.{mine}": f"{theirs}.{yours}"
        for ours, theirs in parts.items()
        for mine, yours in (ATTENTION if ours.endswith("attention") else plain).items()
    }


def copy_parameters(source: nn.Module, target: nn.Module, names: Mapping[str, str]) -> None:
    """Copy the parameters of one module to another; a missing parameter stays missing."""
    for there, here in names.items():
        old_place, _, old_name = there.rpartition(".")
        place, _, name = here.rpartition(".")
        old = getattr(source.get_submodule(old_place), old_name)
        new = None
        if old is not None:
            new = nn.Parameter(old.detach().clone(), requires_grad=old.requires_grad)
        target.get_submodule(place).register_parameter(name, new)


def refuse(summary: str, reasons: Iterable[str]) -> None:
    """Raise `ExchangeError` with all reasons at once, if there are any."""
    Problems(list(reasons)).refuse(
        f"{summary} must not change results, but would", "Convert the other parts one by one"
    )


def attention_from_torch_reasons(theirs: nn.Module, path: str) -> Iterator[str]:
    """List features of a torch attention that ours lacks."""
    if not isinstance(theirs, nn.MultiheadAttention):
        yield f"{path} is a {type(theirs).__name__}, not a torch.nn.MultiheadAttention"
        return
    for name in ("kdim", "vdim"):
        width = getattr(theirs, name)
        if width != theirs.embed_dim:
            yield (
                f"{path} has {name}={width}, but heedful's queries, keys and values come from "
                f"states of one width, here {theirs.embed_dim}"
            )
    if theirs.bias_k is not None or theirs.bias_v is not None:
        yield f"{path} has add_bias_kv=True, a learned key and value after every sequence"
    if theirs.add_zero_attn:
        yield f"{path} has add_zero_attn=True, a key and value of zeros after every sequence"


def attention_to_torch_reasons(ours: MultiHeadAttention, path: str) -> Iterator[str]:
    """List features of our attention that torch's lacks; torch's heads share d_model equally."""
    if not isinstance(ours, MultiHeadAttention):
        yield f"{path} is a {type(ours).__name__}, not a MultiHeadAttention"
        return
    if ours.score != "scaled":
        yield f"{path} has score={ours.score}, but torch's scores are scaled dot products"
    if ours.kv_heads != ours.heads:
        yield (
            f"{path} has kv_heads={ours.kv_heads}, but torch's attention needs one for each "
            f"head: heads={ours.heads}"
        )
    for name in ("norms", "rotation", "relation"):
        part = getattr(ours, name)
        if part is not None:
            yield f"{path}.{name} is a {type(part).__name__}, but torch has no such part"
    for name, width in (("d_k", ours.d_k), ("d_v", ours.d_v)):
        if width * ours.heads != ours.d_model:
            yield (
                f"{path} has heads={ours.heads} of {name}={width}, but torch's heads share "
                f"d_model={ours.d_model} equally"
            )


def layer_from_torch_reasons(
    theirs: nn.Module, kind: type[nn.Module], parts: Mapping[str, str], path: str
) -> Iterator[str]:
    """List features of a torch layer that ours lacks, such as sub-modules of other types."""
    if not isinstance(theirs, kind):
        yield f"{path} is a {type(theirs).__name__}, not a torch.nn.{kind.__name__}"
        return
    settings = []
    for ours, name in parts.items():
        part = getattr(theirs, name)
        if ours.endswith("attention"):
            yield from attention_from_torch_reasons(part, f"{path}.{name}")
            settings.append(("num_heads", getattr(part, "num_heads", None)))
            settings.append(("attention dropout", getattr(part, "dropout", None)))
        elif ours.endswith("norm"):
            yield from norm_reasons(part, f"{path}.{name}")
            dropout = getattr(theirs, name.replace("norm", "dropout"))
            settings += [("eps", getattr(part, "eps", None)), ("dropout", dropout.p)]
    for setting in ("num_heads", "attention dropout", "eps", "dropout"):
        if len({value for name, value in settings if name == setting}) > 1:
            yield f"the sub-layers of {path} differ in {setting}"
    if activation_name(theirs.activation) is None:
        yield (
            f"{path} has the activation {theirs.activation!r}, which is not one of "
            f"{', '.join(ACTIVATIONS)}"
        )


def norm_reasons(norm: nn.Module, path: str) -> Iterator[str]:
    """List reasons why a norm has no counterpart; it may lack a bias, but not a weight."""
    if not isinstance(norm, nn.LayerNorm):
        yield f"{path} is a {type(norm).__name__}, not a torch.nn.LayerNorm"
    elif not norm.elementwise_affine:
        yield f"{path} has elementwise_affine=False, and so no weight to learn"


def layer_to_torch_reasons(ours: OurLayer, parts: Mapping[str, str], path: str) -> Iterator[str]:
    """List features of our layer that torch's lacks; torch accepts all of our activations."""
    for name in parts:
        if name.endswith("attention"):
            yield from attention_to_torch_reasons(getattr(ours, name), f"{path}.{name}")
    network = ours.feed_forward
    if not isinstance(network, FeedForward):
        yield f"{path}.feed_forward is a {type(network).__name__}, not a FeedForward"
    elif network.gated:
        yield f"{path}.feed_forward is gated"
    wirings = {type(getattr(ours, name.split(".")[0])) for name in parts if name.endswith("norm")}
    if len(wirings) > 1 or not wirings <= set(RESIDUALS.values()):
        names = ", ".join(sorted(wiring.__name__ for wiring in wirings))
        yield f"{path} uses {names} instead of only PostNorm or only PreNorm"
    for name in parts:
        wiring = getattr(ours, name.split(".")[0])
        if name.endswith("norm"):
            yield from norm_reasons(wiring.norm, f"{path}.{name}")
            if not wiring.residual:
                yield f"{path}.{name.split('.')[0]} adds no residual (`residuals` is false)"


def shape_of_torch(theirs: TorchLayer) -> LayerConfig:
    """Read the sizes and options of a torch layer."""
    return LayerConfig(
        d_model=theirs.self_attn.embed_dim,
        d_ff=theirs.linear1.out_features,
        heads=theirs.self_attn.num_heads,
        activation=activation_name(theirs.activation) or "",
        dropout=theirs.dropout1.p,
        attention_dropout=theirs.self_attn.dropout,
        norm="pre" if theirs.norm_first else "post",
        norm_epsilon=theirs.norm1.eps,
    )


def activation_name(function: object) -> str | None:
    """Recognize an activation function or module; None if heedful does not have it."""
    for name, ours in ACTIVATIONS.items():
        if function is ours:
            return name
    if isinstance(function, nn.GELU):
        return "gelu_tanh" if function.approximate == "tanh" else "gelu"
    if isinstance(function, nn.ReLU | nn.SiLU):
        return "relu" if isinstance(function, nn.ReLU) else "silu"
    return None
