"""Settings in `config.json` that Marian's class shares with BART's classes."""

from collections.abc import Sequence
from typing import Any

from heedful.config.model import ModelConfig
from heedful.exchange.huggingface.settings import ACTIVATIONS


def widths(config: ModelConfig) -> dict[str, Sequence[int]]:
    """List layers, heads and inner width of both sides."""
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
    """Write a model's settings without its vocabulary; `model_class`: class in transformers."""
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
