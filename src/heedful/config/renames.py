"""
Old names of settings and options, with their present names.

What a user types under an old name is refused, and the message names the new one. What older
versions wrote (``config.json``, checkpoints, prepared text, exported folders) is read through
`renamed_settings` and `renamed_table`.
"""

from collections.abc import Mapping
from typing import Any

SETTINGS = {
    "data.max_ratio": "data.max_length_ratio",
    "data.sampling": "data.subword_sampling",
    "data.script_share": "data.min_script_share",
    "model.architecture": "model.encoder",
    "model.first_position": "model.position_offset",
    "model.start": "model.decoder_start",
    "model.tie": "model.tie_embeddings",
    "search.at_limit": "search.length_limit_policy",
    "search.finish_among": "search.eos_candidates",
    "search.forbidden": "search.forbidden_ids",
    "search.max_source": "search.max_source_length",
    "train.average_decay": "train.ema_decay",
    "train.clip": "train.clip_norm",
    "train.smoothing_form": "train.smoothing_target",
}
"""Settings by their dotted names."""

_NORMS = {"open": "pre-no-final"}
VALUES: dict[str, dict[str, str]] = {
    "model.norm": _NORMS,
    "model.encoder_norm": _NORMS,
    "model.decoder_norm": _NORMS,
    "search.stop": {
        "best": "when-none-can-win",
        "full": "when-beam-finished",
        "top": "as-ctranslate2",
        "worst": "as-transformers",
        "joey": "as-joey",
    },
}
"""Values of settings, by the setting's dotted name of today."""

OPTIONS = {
    "translate": {
        "--to": "--target-language",
        "--no-repeat": "--no-repeat-ngram",
        "--avoid": "--avoid-phrases",
        "--constraints": "--force-phrases",
        "--prefix": "--target-prefix",
        "--groups": "--diverse-groups",
        "--diversity": "--diversity-strength",
    },
    "attend": {"--to": "--target-language"},
    "export": {"--to": "--format"},
    "data get": {"--to": "--out"},
    "data show": {"--from": "--first"},
    "train": {
        "--keep": "--keep-state",
        "--anew": "--reset",
        "--inexact": "--allow-inexact-resume",
    },
    "paper figure3": {"--asks": "--query", "--answers": "--keys"},
    "paper figure4": {"--asks": "--query", "--answers": "--keys"},
    "paper heads": {"--asks": "--query"},
}
"""Options of the command line, by command."""

ORIGIN = {"keep": "keep_state", "anew": "reset"}
"""Fields of ``origin.json``."""

TENSORS = {
    "project_in": "qkv_proj",
    "project_out": "out_proj",
    "widen": "linear1",
    "narrow": "linear2",
    "output_table": "output.weight",
    "output_embedding": "output.weight",
    "output_bias": "output.bias",
}
"""Parts of the names of tensors in checkpoints."""


def renamed_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert settings of older versions, in tables or with dotted names, to present names."""
    return dict(_renamed("", name, value) for name, value in values.items())


def renamed_table(table: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert one table of settings of older versions to present names."""
    return dict(_renamed(f"{table}.", name, value) for name, value in values.items())


def renamed_tensor(name: str) -> str:
    """Return the present name of a tensor of a checkpoint."""
    return ".".join(TENSORS.get(part, part) for part in name.split("."))


def _renamed(table: str, name: str, value: Any) -> tuple[str, Any]:
    """Rename one setting, its value, or all of a table."""
    if isinstance(value, Mapping):
        return name, renamed_table(name, value)
    today = SETTINGS.get(table + name, table + name)
    if isinstance(value, str):
        value = VALUES.get(today, {}).get(value, value)
    return today.removeprefix(table), value
