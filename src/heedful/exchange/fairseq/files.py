"""
fairseq's files: dictionaries, checkpoints of all versions, and their options.

As in fairseq, the tensors of an old checkpoint get their new names.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from heedful.errors import ExchangeError
from heedful.exchange.pickled.settings import settings_of
from heedful.exchange.transformer import TensorNames
from heedful.families.foreign import Array, table_in
from heedful.files import read_within

TENSOR_NAMES = TensorNames(
    encoder_layer="encoder.layers.{}",
    decoder_layer="decoder.layers.{}",
    encoder_self="self_attn",
    decoder_self="self_attn",
    cross="encoder_attn",
    query="q_proj",
    key="k_proj",
    value="v_proj",
    mixed="out_proj",
    linear1="fc1",
    linear2="fc2",
    encoder_norms=("self_attn_layer_norm", "final_layer_norm"),
    decoder_norms=("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
    encoder_norm="encoder.layer_norm",
    decoder_norm="decoder.layer_norm",
    source_table="encoder.embed_tokens.weight",
    target_table="decoder.embed_tokens.weight",
    output_embedding="decoder.output_projection.weight",
    source_positions="encoder.embed_positions.weight",
    target_positions="decoder.embed_positions.weight",
)
"""The tensor names of fairseq."""
FIRST = ("<s>", "<pad>", "</s>", "<unk>")
"""The first symbols of every dictionary, which its file does not list."""
_PREFERRED = ("model.pt", "checkpoint_best.pt", "checkpoint_last.pt")


def read_dictionary(file: Path) -> dict[str, int]:
    """Read a vocabulary of fairseq, or raise `ExchangeError`."""
    # A symbol may occur twice if its second line contains ``#fairseq:overwrite``; then the second
    # id counts. Symbols such as ``madeupword0000`` pad the table and are read like other symbols.
    try:
        lines = read_within(file).decode().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ExchangeError(
            f"{file} must be a vocabulary of fairseq, but cannot be read ({error}); copy it from "
            f"the binarized data."
        ) from error
    numbers = {symbol: number for number, symbol in enumerate(FIRST)}
    count = len(numbers)
    for place, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        match = re.fullmatch(r"(.+) (-?[0-9]+)( #fairseq:overwrite)?", line.rstrip())
        if match is None or (match[1] in numbers and not match[3]):
            raise ExchangeError(
                f"each line of {file} must be a new symbol, a space and a number, but line "
                f"{place} is {line[:60]!r}; copy it from the binarized data."
            )
        numbers[match[1]] = count
        count += 1
    return numbers


def upgrade_tensors(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Rename the tensors of old checkpoints, as fairseq does when loading them."""
    new: dict[str, Array] = {}
    for name, array in tensors.items():
        stacked = re.fullmatch(r"(.*attn\.)in_proj_(weight|bias)", name)
        norm = re.fullmatch(r"((encoder|decoder)\.layers\.\d+\.)layer_norms\.([012])\.(.*)", name)
        if stacked is not None and len(array) % 3 == 0:
            for part, rows in zip("qkv", np.split(array, 3), strict=True):
                new[f"{stacked[1]}{part}_proj.{stacked[2]}"] = rows
        elif norm is not None:
            names = (
                TENSOR_NAMES.encoder_norms if norm[2] == "encoder" else TENSOR_NAMES.decoder_norms
            )
            own = names[min(int(norm[3]), len(names) - 1)]
            new[f"{norm[1]}{own}.{norm[4]}"] = array
        else:
            new[TENSOR_NAMES.output_embedding if name == "decoder.embed_out" else name] = array
    if TENSOR_NAMES.output_embedding not in new and TENSOR_NAMES.target_table in new:
        new[TENSOR_NAMES.output_embedding] = new[TENSOR_NAMES.target_table]
    return new


def checkpoint_file(path: Path) -> Path:
    """Find the checkpoint. Raises `ExchangeError` if it is missing or ambiguous."""
    if path.is_file():
        return path
    files = sorted(path.glob("*.pt")) if path.is_dir() else []
    for name in _PREFERRED:
        if path / name in files:
            return path / name
    if len(files) != 1:
        names = ", ".join(file.name for file in files[:6]) or "none"
        raise ExchangeError(
            f"{path} must be a checkpoint of fairseq, or a folder with one checkpoint or with "
            f"{_PREFERRED[1]}, but its .pt files are: {names}; give the path of the checkpoint."
        )
    return files[0]


def options_in(saved: Mapping[Any, Any], file: Path) -> dict[str, Any]:
    """Collect the training options. Raises `ExchangeError` if the checkpoint has none."""
    if saved.get("args") is not None:
        return settings_of(saved["args"])
    if saved.get("cfg") is None:
        raise ExchangeError(
            f"{file} must have the options of its training (`args` or `cfg`), but has neither; "
            "fairseq did not write it."
        )
    parts = settings_of(saved["cfg"])
    settings: dict[str, Any] = {"generation": parts.get("generation") or {}}
    for table in ("task", "model"):
        for name, value in table_in(parts, table).items():
            if isinstance(value, dict):
                settings |= {f"{name}_{key}": inner for key, inner in value.items()}
            else:
                settings[name] = value
    settings["arch"] = settings.get("arch") or settings.get("_name")
    return settings
