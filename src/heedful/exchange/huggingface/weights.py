"""
Weights of a Hugging Face folder, in any of the four layouts that `save_pretrained` has used.

::

    model.safetensors                 one file
    model.safetensors.index.json      {"weight_map": {tensor: file}}, and the files that it names
    pytorch_model.bin                 a pickle of torch
    pytorch_model.bin.index.json      likewise with pickles

As in transformers, the first layout that exists is read. A pickle is read by the restricted reader
of `heedful.exchange.pickled`, which executes nothing and refuses tensors that extend beyond their
file.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from heedful.errors import ExchangeError
from heedful.exchange.formats import read_safetensors, read_settings_file, write_settings_file
from heedful.exchange.pickled.lazy_tensors import read_arrays
from heedful.exchange.pickled.torch_file import read_torch_file
from heedful.files import write_synced

SAFETENSORS, PICKLE = "model.safetensors", "pytorch_model.bin"
LAYOUTS = (SAFETENSORS, f"{SAFETENSORS}.index.json", PICKLE, f"{PICKLE}.index.json")
"""File names in the order of preference."""
SHARDS = ("model-*-of-*.safetensors", "pytorch_model-*-of-*.bin")
"""Patterns of the names that `save_pretrained` gives to the files of an index."""
_SHARD = re.compile(r"[\w-][\w.-]{0,199}\.(?:safetensors|bin)")
_MOST_SHARDS = 1000


def weights_file(folder: Path) -> Path | None:
    """Find the file that holds the weights or lists their files; None if there is none."""
    return next((folder / name for name in LAYOUTS if (folder / name).is_file()), None)


def has_safetensors(folder: Path) -> bool:
    """Return whether a folder has weights that are not a pickle."""
    path = weights_file(folder)
    return path is not None and path.name.startswith(SAFETENSORS)


def shard_names(index: Path) -> dict[str, str]:
    """Read the file name of each tensor from an index. Raises `ExchangeError` if it is invalid."""
    places = read_settings_file(index).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise ExchangeError(f"{index} must name each tensor's file in weight_map, but does not.")
    files = {*map(str, places.values())}
    if wrong := sorted(name for name in files if not _SHARD.fullmatch(name)):
        raise ExchangeError(
            f"{index} must name files of weights in its own folder, but names {wrong[0]!r:.60}."
        )
    if len(files) > _MOST_SHARDS:
        raise ExchangeError(
            f"{index} must name at most {_MOST_SHARDS:,} files, but names {len(files):,}."
        )
    return {str(tensor): str(name) for tensor, name in places.items()}


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read all tensors of a folder. Raises `ExchangeError` if files are missing or damaged."""
    path = weights_file(folder)
    if path is None:
        raise ExchangeError(
            f"{folder} must contain weights ({', '.join(LAYOUTS)}), but contains none of these; "
            "copy the whole folder again."
        )
    if path.suffix != ".json":
        return _read_file(path)
    places = shard_names(path)
    files = {name: folder / name for name in sorted({*places.values()})}
    if missing := [name for name, file in files.items() if not file.is_file()]:
        raise ExchangeError(
            f"{path} names files that do not exist: {', '.join(missing)}; copy the whole folder "
            "again."
        )
    return dict(_read_shards(places, files, path))


def write_model(
    folder: Path,
    tensors: dict[str, Tensor],
    settings: Mapping[str, Any],
    generation: Mapping[str, Any],
) -> None:
    """Write the weights, `config.json` and `generation_config.json`."""
    write_synced(folder / SAFETENSORS, safetensors.torch.save(tensors, {"format": "pt"}))
    write_settings_file(folder / "config.json", settings)
    write_settings_file(folder / "generation_config.json", generation)


def _read_shards(
    places: dict[str, str], files: dict[str, Path], index: Path
) -> Iterator[tuple[str, Tensor]]:
    """Read the tensors file by file, and compare their names with the index."""
    for name, file in files.items():
        tensors = _read_file(file)
        listed = {tensor for tensor, place in places.items() if place == name}
        if different := sorted(listed ^ {*tensors}):
            raise ExchangeError(
                f"{file} must contain the tensors that {index.name} lists for it, but the two "
                f"lists differ in {', '.join(different)[:200]}; copy the whole folder again."
            )
        yield from tensors.items()


def _read_file(path: Path) -> dict[str, Tensor]:
    """Read one file of tensors."""
    if path.suffix == ".safetensors":
        return read_safetensors(path)
    saved = read_torch_file(path)
    arrays = read_arrays(saved, path) if isinstance(saved, dict) else {}
    if not arrays:
        raise ExchangeError(
            f"{path} must be a dictionary of tensors that torch saved, but is something else; copy "
            "it again."
        )
    return {name: torch.from_numpy(array) for name, array in arrays.items()}
