"""
`config.json` of Hugging Face's T5 class, and our equivalent settings.

::

    feed_forward_proj        model.activation and model.gated; gated-gelu uses gelu_tanh
    scale_decoder_outputs    model.scale_output; in older files, tie_word_embeddings decides
    lm_head in the weights   model.tie_embeddings: whether it differs from the embeddings
    d_kv                     model.d_k and model.d_v
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from torch import Tensor

from heedful.config.model import ModelConfig
from heedful.exchange.formats import Problems
from heedful.exchange.huggingface.settings import check_counts, check_rate
from heedful.exchange.t5.names import HEAD, SHARED

_ACTIVATIONS = {
    "relu": ("relu", False),
    "gated-gelu": ("gelu_tanh", True),
    "gelu": ("gelu", False),
    "gelu_new": ("gelu_tanh", False),
    "silu": ("silu", False),
    "gated-relu": ("relu", True),
    "gated-silu": ("silu", True),
    "swish": ("silu", False),
    "gated-swish": ("silu", True),
    "gated-gelu_new": ("gelu_tanh", True),
}
"""Activation, and whether it is gated, by name; an export writes the first of several names."""
NUMBERS = {
    "vocab_size": None,
    "d_model": 512,
    "d_kv": 64,
    "d_ff": 2048,
    "num_layers": 6,
    "num_heads": 8,
    "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128,
}
"""Sizes with the defaults of the class."""
# Other names for these sizes, which any class of the library accepts.
_OTHER_NAMES = {
    "hidden_size": "d_model",
    "num_attention_heads": "num_heads",
    "num_hidden_layers": "num_layers",
    "head_dim": "d_kv",
}
# Our settings that every model of the class has; sizes and other settings follow below.
_FIXED = {
    "encoder": "transformer",
    "decoder": "transformer",
    "norm": "pre",
    "norm_kind": "rms",
    "residuals": True,
    "causal_mask": True,
    "positions": "relative-buckets",
    "projection_bias": False,
    "feed_forward_bias": False,
    "output_bias": False,
    "scale_embeddings": False,
    "source_end": True,
}


def complete(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in the defaults; the names of T5's settings take precedence over general names."""
    common = {ours: settings[name] for name, ours in _OTHER_NAMES.items() if name in settings}
    named = {**NUMBERS, "feed_forward_proj": "relu", "dropout_rate": 0.1, **common, **settings}
    named.setdefault("layer_norm_epsilon", 1e-6)
    if named.get("num_decoder_layers") is None:
        named["num_decoder_layers"] = named["num_layers"]
    return named


def check_settings(settings: Mapping[str, Any], reasons: Problems) -> None:
    """Add reasons why no model of this class can be built from the settings."""
    check_counts(settings, (*NUMBERS, "num_decoder_layers"), reasons)
    kind = settings["feed_forward_proj"]
    reasons.add_if(
        kind not in [*_ACTIVATIONS],
        f"feed_forward_proj must be one of {', '.join(_ACTIVATIONS)}, but is {kind!r}",
    )
    if isinstance(kind, str):  # transformers derives these values, unless the file has others
        function = kind.removeprefix("gated-")
        derived = {
            "dense_act_fn": "gelu_new" if kind == "gated-gelu" else function,
            "is_gated_act": kind != function,
        }
        for name, value in derived.items():
            reasons.add_if(
                settings.get(name, value) != value,
                f"{name} must be {value}, as feed_forward_proj implies, but is "
                f"{settings.get(name)!r}",
            )
    check_rate(settings["dropout_rate"], "dropout_rate", reasons)
    epsilon = settings["layer_norm_epsilon"]
    reasons.add_if(
        not isinstance(epsilon, int | float) or not 0 < epsilon < 1,
        f"layer_norm_epsilon must be above 0 and below 1, but is {epsilon!r}",
    )
    if not reasons.messages:
        buckets = settings["relative_attention_num_buckets"]
        most = settings["relative_attention_max_distance"]
        reasons.add_if(
            not 4 <= buckets <= 100_000 or not buckets // 2 < most <= 1_000_000,
            "relative_attention_num_buckets must be from 4 to 100,000, and "
            f"relative_attention_max_distance above half that number and at most 1,000,000, but "
            f"they are {buckets:,} and {most:,}",
        )


def model_settings(settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Convert T5's model settings to ours."""
    activation, gated = _ACTIVATIONS[settings["feed_forward_proj"]]
    own_head = HEAD in tensors and SHARED in tensors and not tensors[HEAD].equal(tensors[SHARED])
    return {
        **_FIXED,
        "d_model": settings["d_model"],
        "d_k": settings["d_kv"],
        "d_v": settings["d_kv"],
        "d_ff": settings["d_ff"],
        "heads": settings["num_heads"],
        "encoder_layers": settings["num_layers"],
        "decoder_layers": settings["num_decoder_layers"],
        "activation": activation,
        "gated": gated,
        "dropout": float(settings["dropout_rate"]),
        "norm_epsilon": float(settings["layer_norm_epsilon"]),
        "tie_embeddings": "embeddings" if own_head else "all",
        "scale_output": _is_scaled(settings),
        "attention.score": "unscaled",
        "relative_buckets.count": settings["relative_attention_num_buckets"],
        "relative_buckets.max_distance": settings["relative_attention_max_distance"],
    }


def _is_scaled(settings: Mapping[str, Any]) -> bool:
    """Return whether the decoder's states are scaled; mT5 never scales them."""
    if settings.get("model_type") == "mt5":
        return False
    setting = settings.get("scale_decoder_outputs")
    return (
        bool(setting) if setting is not None else settings.get("tie_word_embeddings") is not False
    )


def check_model(config: ModelConfig, reasons: Problems) -> None:
    """Add a reason for each setting that the class cannot express."""
    need = partial(reasons.need, config)
    for name, wanted in _FIXED.items():
        need(name, getattr(config, name) == wanted, wanted)
    for side in ("encoder", "decoder"):
        need(f"{side}_norm", getattr(config, f"{side}_norm") in (None, "pre"), "pre")
        for name in ("heads", "d_ff"):
            own = getattr(config, f"{side}_{name}")
            need(f"{side}_{name}", own in (None, getattr(config, name)), f"model.{name}")
    need("d_v", _width(config, "d_v") == _width(config, "d_k"), "model.d_k")
    need("tie_embeddings", config.tie_embeddings in ("all", "embeddings"), "all or embeddings")
    need("decoder_start", config.decoder_start != "zero", "symbol, pad or end")
    need("position_offset", config.position_offset == 0, 0)
    score = config.attention.score
    reasons.add_if(score != "unscaled", f"model.attention.score must be unscaled, but is {score}")
    named = config.activation, config.gated
    reasons.add_if(
        named not in _ACTIVATIONS.values(),
        f"a gated network must use relu, gelu_tanh or silu, but uses {config.activation}",
    )


def config_of(config: ModelConfig) -> dict[str, Any]:
    """Build the settings for `config.json`, except the vocabulary size and the special ids."""
    kinds = {value: name for name, value in reversed(_ACTIVATIONS.items())}
    buckets = config.model_dump()["relative_buckets"]
    return {
        "architectures": ["T5ForConditionalGeneration"],
        "model_type": "t5",
        "is_encoder_decoder": True,
        "d_model": config.d_model,
        "d_kv": _width(config, "d_k"),
        "d_ff": config.d_ff,
        "num_layers": config.encoder_layers,
        "num_decoder_layers": config.decoder_layers,
        "num_heads": config.heads,
        "relative_attention_num_buckets": buckets["count"],
        "relative_attention_max_distance": buckets["max_distance"],
        "dropout_rate": config.dropout,
        "layer_norm_epsilon": config.norm_epsilon,
        "feed_forward_proj": kinds[config.activation, config.gated],
        # before transformers 5, the class reads only the first setting, which also ties the output
        "tie_word_embeddings": config.scale_output,
        "scale_decoder_outputs": config.scale_output,
        "dtype": "float32",
        "use_cache": True,
    }


def _width(config: ModelConfig, name: str) -> int:
    """Return the width of a head's keys or values."""
    return int(getattr(config, name) or config.d_model // config.heads)
