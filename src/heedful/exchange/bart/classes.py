"""
The classes of BART and of models derived from it, and their differences.

::

                 norms    positions              norm of embeddings   bias of logits
    M2M100       pre      sinusoids from 2       no                   no
    mBART        pre      learned                yes                  yes
    BART         post     learned                yes                  yes

All classes have the same epsilon in layer norms, and biases in all linear layers of the encoder and
the decoder. Both embeddings and the output layer share one table unless `tie_word_embeddings` is
false.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from heedful.config.model import ModelConfig
from heedful.exchange.formats import Problems
from heedful.exchange.huggingface.config_record import EPSILON, check_heads, shared_settings

FIRST_POSITION = 2
"""Index of the first used row in a table of learned positions."""
_USUAL: dict[str, dict[str, Any]] = {
    "activation_function": {"m2m_100": "relu"},
    "scale_embedding": {"m2m_100": True},
    "vocab_size": {"m2m_100": 128112, "mbart": 50265, "bart": 50265},
}


@dataclass(frozen=True)
class BartClass:
    """The class of BART or of a model derived from it."""

    title: str
    """Name of the class in messages."""
    model: str
    """Name of the class in transformers."""
    norm: str
    """Value of our setting `model.norm`."""
    is_learned: bool
    """Whether its positions are learned; otherwise they are sinusoids, sines before cosines."""

    @property
    def has_bias(self) -> bool:
        """Whether the logits may have a bias."""
        return self.is_learned


CLASSES = {
    "m2m_100": BartClass("M2M100", "M2M100ForConditionalGeneration", "pre", False),
    "mbart": BartClass("mBART", "MBartForConditionalGeneration", "pre", True),
    "bart": BartClass("BART", "BartForConditionalGeneration", "post", True),
}
"""The classes by `model_type`."""


def complete(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in the defaults of a class."""
    kind = str(settings.get("model_type"))
    usual: dict[str, Any] = {
        "activation_function": "gelu",
        "scale_embedding": False,
        "dropout": 0.1,
        "max_position_embeddings": 1024,
        "pad_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 2,
        "tie_word_embeddings": True,
    }
    for name, values in _USUAL.items():
        if kind in values:
            usual[name] = values[kind]
    return {**usual, **settings}


def model_settings(settings: Mapping[str, Any], tie: str, has_bias: bool) -> dict[str, Any]:
    """Convert the class's model settings to ours."""
    kind = CLASSES[settings["model_type"]]
    return {
        **shared_settings(settings),
        "norm": kind.norm,
        "positions": "learned" if kind.is_learned else "halves",
        "position_offset": 0 if kind.is_learned else settings["pad_token_id"] + 1,
        "embedding_norm": kind.is_learned,
        "tie_embeddings": tie,
        "output_bias": has_bias,
    }


def class_of(config: ModelConfig) -> str | None:
    """Find the class with the norms and positions of a model; None if no class has them."""
    norms = {config.norm, config.encoder_norm or config.norm, config.decoder_norm or config.norm}
    for name, kind in CLASSES.items():
        positions = "learned" if kind.is_learned else "halves"
        if norms == {kind.norm} and config.positions == positions:
            return name
    return None


def check_model(config: ModelConfig, kind: BartClass, reasons: Problems) -> None:
    """Add a reason for each setting that a class cannot express."""
    need = partial(reasons.need, config)
    need("norm_epsilon", config.norm_epsilon == EPSILON, f"{EPSILON:g}")
    need("embedding_norm", config.embedding_norm == kind.is_learned, str(kind.is_learned).lower())
    if not kind.is_learned:
        need("position_offset", config.position_offset == FIRST_POSITION, FIRST_POSITION)
        need("output_bias", not config.output_bias, "false")
    need("projection_bias", config.projection_bias, "true")
    check_heads(config, reasons)
