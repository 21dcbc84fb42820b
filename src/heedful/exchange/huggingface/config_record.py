"""Settings in `config.json` that Marian's class shares with BART's classes, and our equivalents."""

from collections.abc import Mapping, Sequence
from typing import Any

from heedful.config.model import ModelConfig
from heedful.config.schema import RunConfig
from heedful.config.search import SearchConfig
from heedful.exchange.formats import Problems
from heedful.exchange.huggingface.settings import ACTIVATIONS
from heedful.tokenization.tokenizer import Tokenizer

EPSILON = 1e-5
"""The epsilon of layer norms, which is fixed."""


def shared_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the shared model settings to ours."""
    return {
        "d_model": settings["d_model"],
        "heads": settings["encoder_attention_heads"],
        "decoder_heads": settings["decoder_attention_heads"],
        "d_ff": settings["encoder_ffn_dim"],
        "decoder_d_ff": settings["decoder_ffn_dim"],
        "encoder_layers": settings["encoder_layers"],
        "decoder_layers": settings["decoder_layers"],
        "activation": ACTIVATIONS[settings["activation_function"]],
        "dropout": float(settings.get("dropout", 0.1)),
        "norm_epsilon": EPSILON,
        "scale_embeddings": bool(settings.get("scale_embedding", False)),
    }


def run_config(
    model: Mapping[str, Any], search: SearchConfig, tokenizer: Tokenizer, max_length: int = 256
) -> RunConfig:
    """Build the settings of an imported run, also for T5."""
    return RunConfig().with_settings(
        {
            **{f"model.{name}": value for name, value in model.items()},
            **{f"search.{name}": value for name, value in search.model_dump().items()},
            "data.source_language": tokenizer.source_language,
            "data.target_language": tokenizer.target_language,
            "data.vocabulary_size": tokenizer.target_size,
            "data.vocabulary_multiple": 1,
            "data.shared_vocabulary": tokenizer.shared,
            "data.max_length": max_length,
        }
    )


def check_heads(config: ModelConfig, reasons: Problems) -> None:
    """Add a reason for each side in which `d_k` or `d_v` is not `d_model` / heads."""
    for side, (_, heads, _) in widths(config).items():
        width = config.d_model / heads
        for name in ("d_k", "d_v"):
            value = getattr(config, name) or config.d_model // heads
            reasons.add_if(
                value != width,
                f"model.{name} must be d_model / heads ({width:g} in the {side}), but is {value}",
            )


def widths(config: ModelConfig) -> dict[str, Sequence[int]]:
    """Return the numbers of layers and heads, and the feed-forward width, of each side."""
    return {
        side: (
            getattr(config, f"{side}_layers"),
            getattr(config, f"{side}_heads") or config.heads,
            getattr(config, f"{side}_d_ff") or config.d_ff,
        )
        for side in ("encoder", "decoder")
    }


def config_record(
    config: ModelConfig, model_class: str, model_type: str, positions: int
) -> dict[str, Any]:
    """Build a model's settings without its vocabulary; `model_class`: class in transformers."""
    named: dict[str, Any] = {}
    for side, (layers, heads, d_ff) in widths(config).items():
        named |= {
            f"{side}_layers": layers,
            f"{side}_attention_heads": heads,
            f"{side}_ffn_dim": d_ff,
            f"{side}_layerdrop": 0.0,
        }
    return {
        "architectures": [model_class],
        "model_type": model_type,
        "is_encoder_decoder": True,
        "d_model": config.d_model,
        "num_hidden_layers": config.encoder_layers,
        **named,
        "activation_function": next(t for t, o in ACTIVATIONS.items() if o == config.activation),
        "dropout": config.dropout,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "scale_embedding": config.scale_embeddings,
        "max_position_embeddings": positions,
        "dtype": "float32",
        "init_std": 0.02,
        "use_cache": True,
    }
