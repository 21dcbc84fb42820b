"""
Checkpoints: safetensors and JSON files, checked by SHA-256, without pickle.

`state.json` has the checksums of the other files and of itself. So a partial, damaged or foreign
file is detected before it is used.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from heedful.data.tensor_shapes import check_header
from heedful.errors import RunFolderError
from heedful.files import open_ordinary, remove_folder, replacing, write_synced
from heedful.model.weights import is_running_average, named_weights
from heedful.plugins import classes_of_plugins
from heedful.runs.folder import RunFolder, read_json
from heedful.runs.language_pair import LanguagePair

MODEL, TRAINING, STATE = "model.safetensors", "training.safetensors", "state.json"
Tensors = Mapping[str, Tensor]
# The properties that link weights to a run: “tokenizer” is the fingerprint of the tokenizer, and
# “settings” are the settings by their dotted names.
Signature = Mapping[str, Any]
_MASTER, _ADAM = "master", ["first", "second"]
_KINDS: tuple[list[str], ...] = (_ADAM, ["momentum"], [])
# A training file contains at most three tensors for each weight: a master weight and two moments.
# Four times the size of the weights is also enough for wider data types. The header has at most a
# megabyte.
_MOST_TIMES, _ALWAYS = 4, 1 << 20
_FLOATING = ("BF16", "F16", "F32", "F64")
_ONLY_IN_TRAINING = frozenset(("model.dropout",))


@dataclass(frozen=True)
class Checkpoint:
    """
    The content of a checkpoint folder.

    All tensors are on the CPU. Each access reads the tensor from its file again. So a caller that
    reads tensors one after the other never has both the complete checkpoint and the model in
    memory.
    """

    model: Tensors
    """fp32 weights by name."""
    training: Tensors
    """
    The optimizer's moments by name, and the master weights if `model` is their moving average.
    Empty if only the weights were requested.
    """
    state: dict[str, Any]
    """Counters, best validations, and the reason for the checkpoint."""


class _Stored(Tensors):
    """
    The tensors of a file by name, read on access.

    `finite`: whether NaN and infinity are refused when a tensor is read.
    """

    def __init__(self, path: Path, finite: bool = False) -> None:
        self._path, self._finite = path, finite
        # Tensors are read, not memory-mapped, because tensors in use must not change with the file.
        self._file = safe_open(path, framework="pt", backend="pread")
        self._names = frozenset(self._file.keys())

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._names:
            raise KeyError(name)
        try:
            tensor: Tensor = self._file.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise RunFolderError(
                _damage_error(self._path, f"{name} cannot be read: {error}")
            ) from error
        if self._finite and not all_finite(tensor):
            raise RunFolderError(
                f"{self._path} must hold finite numbers, but {name} holds NaN or infinity: this "
                f"training has diverged. Delete the folder {self._path.parent} to go on without "
                "it, or use other weights."
            )
        return tensor

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor without reading it."""
        return tuple(self._file.get_slice(name).get_shape())

    def kind(self, name: str) -> str:
        """Return the name that safetensors gives a tensor's data type."""
        return str(self._file.get_slice(name).get_dtype())

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._names))

    def __len__(self) -> int:
        return len(self._names)


def save_checkpoint(
    folder: Path, model: Tensors, training: Tensors | None, state: Mapping[str, Any]
) -> None:
    """
    Write a checkpoint folder.

    `training`: as `Checkpoint.training`; None for weights without a training state, such as an
    average.

    Equal states give equal bytes. Raises `StorageError` if the disk is full.
    """
    with replacing(folder) as temporary_folder:
        checksums = {MODEL: _write_tensors(temporary_folder / MODEL, model)}
        if training is not None:
            checksums[TRAINING] = _write_tensors(temporary_folder / TRAINING, training)
        content = {**state, "sha256": checksums}
        content["sha256"] = {**checksums, STATE: _state_checksum(content)}
        write_synced(temporary_folder / STATE, json.dumps(content, indent=2).encode())


def load_checkpoint(
    folder: Path, with_training: bool = False, signature: Signature | None = None
) -> Checkpoint:
    """
    Open a checkpoint folder and verify the checksum of each file that is used.

    Raises `RunFolderError` if a file is damaged, or if the weights do not belong to the run with
    this signature. No content of a file is ever executed.
    """
    state = read_state(folder, signature)
    checksums = state["sha256"]
    model = _open_tensors(folder / MODEL, checksums.get(MODEL), finite=True)
    if not with_training:
        return Checkpoint(model, {}, state)
    if _size(folder / TRAINING) > _MOST_TIMES * _size(folder / MODEL) + _ALWAYS:
        raise RunFolderError(_damage_error(folder / TRAINING, "it is much larger than the weights"))
    training = _open_tensors(folder / TRAINING, checksums.get(TRAINING), finite=True)
    _check_training(folder / TRAINING, model, training, state)
    return Checkpoint(model, training, state)


def read_state(folder: Path, signature: Signature | None = None) -> dict[str, Any]:
    """Read and check `state.json`; raises `RunFolderError` as `load_checkpoint` does."""
    state = read_json(folder / STATE)
    checksums = state.get("sha256")
    if not isinstance(checksums, dict) or checksums.get(STATE) != _state_checksum(state):
        raise RunFolderError(_damage_error(folder / STATE, "it does not match its own checksum"))
    if signature is not None:
        _check_signature(folder, state, signature)
    return state


def read_averages(folder: Path, name: str) -> dict[str, list[float]]:
    """Read the running averages called `name`, keyed by module, without reading the weights."""
    path = folder / MODEL
    try:
        check_header(path)
        stored = _Stored(path)
        modules = [key.rpartition(".")[0] for key in stored if key.endswith(f".{name}")]
        return {module: stored[f"{module}.{name}"].tolist() for module in modules}
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror}.") from error
    except (SafetensorError, ValueError) as error:
        raise RunFolderError(
            _damage_error(path, f"it is not a safetensors file of weights ({error})")
        ) from error


def load_weights(model: nn.Module, tensors: Tensors, origin: Path) -> None:
    """
    Load weights into a model after a check of all names and shapes.

    `model`: changed in place.

    Raises `RunFolderError` for missing or extra tensors and wrong shapes, with at most five names
    of each, or for a tensor that is not finite.
    """
    check_weights(model, tensors, origin)
    for name, weight in named_weights(model).items():
        weight.data.copy_(tensors[name])


def check_weights(model: nn.Module, tensors: Tensors, origin: Path) -> None:
    """Compare names and shapes with a model; a `RunFolderError` lists the differences."""
    needed = {name: tuple(weight.shape) for name, weight in named_weights(model).items()}
    problems = [
        f"{label} {', '.join(sorted(names)[:5])}{', …' if len(names) > 5 else ''}"
        for label, names in (
            ("missing:", needed.keys() - tensors.keys()),
            ("not expected:", tensors.keys() - needed.keys()),
        )
        if names
    ]
    wrong = [
        f"{name} is {_shape(tensors, name)} instead of {shape}"
        for name, shape in needed.items()
        if name in tensors and _shape(tensors, name) != shape
    ]
    problems += wrong[:5] + ["…"] * (len(wrong) > 5)
    if problems:
        classes = classes_of_plugins(model.modules())
        changed = f", or a class has changed since: {', '.join(classes)}" if classes else ""
        raise RunFolderError(
            f"the weights in {origin} must fit the settings of this run, but do not: "
            f"{'; '.join(problems)}. They belong to another recipe or vocabulary{changed}."
        )


def check_alike(models: Sequence[Tensors], places: Sequence[Path]) -> None:
    """Refuse checkpoints whose weights do not belong to the same model."""
    first, *others = ({name: _shape(tensors, name) for name in tensors} for tensors in models)
    for shapes, place in zip(others, places[1:], strict=True):
        if differing := sorted(
            name for name in first.keys() | shapes.keys() if first.get(name) != shapes.get(name)
        ):
            raise RunFolderError(
                f"checkpoints must belong to one model to be averaged, but {places[0]} and {place} "
                f"differ in {', '.join(differing[:5])}{', …' if len(differing) > 5 else ''}; "
                "delete the one that does not belong to this run."
            )


def all_finite(tensor: Tensor) -> bool:
    """Return whether a tensor contains neither NaN nor infinity, in one pass without a copy."""
    return all(map(math.isfinite, map(float, tensor.aminmax())))


def stored_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Read only the shapes of a checkpoint's weights; empty if they cannot be read."""
    try:
        check_header(folder / MODEL)
        stored = _Stored(folder / MODEL)
        return {name: stored.shape(name) for name in stored}
    except (OSError, SafetensorError, ValueError):
        return {}


def _shape(tensors: Tensors, name: str) -> tuple[int, ...]:
    """Return the shape of a tensor, without reading it if it is stored in a file."""
    return tensors.shape(name) if isinstance(tensors, _Stored) else tuple(tensors[name].shape)


def retain(folder: RunFolder, keep_last: int, best: Iterable[int]) -> None:
    """Delete checkpoints that are neither recent nor among the best."""
    # Checkpoints written only because of a good validation or a signal do not count as recent,
    # because an average needs checkpoints at equal intervals. The newest checkpoint is always kept.
    steps = folder.steps()
    remaining = set(best) | set(steps[-1:]) | set(regular_steps(folder)[-keep_last:])
    for step in steps:
        if step not in remaining:
            remove_folder(folder.checkpoint(step))


def regular_steps(folder: RunFolder) -> list[int]:
    """List the steps of regular checkpoints (every N steps or minutes), and the newest step."""
    steps = folder.steps()
    return [
        step for step in steps if step == steps[-1] or _reason(folder.checkpoint(step)) == "regular"
    ]


def _reason(checkpoint: Path) -> str:
    """Return why a checkpoint was written, or “damaged” if it cannot be read."""
    try:
        return str(read_json(checkpoint / STATE).get("reason"))
    except RunFolderError:
        return "damaged"


def _write_tensors(path: Path, tensors: Tensors) -> str:
    """Write one safetensors file in a fixed order and return its SHA-256."""
    ordered = {name: tensors[name].detach().cpu().contiguous() for name in sorted(tensors)}
    content = safetensors.torch.save(ordered)
    write_synced(path, content)
    return hashlib.sha256(content).hexdigest()


def _open_tensors(path: Path, checksum: str | None, finite: bool = False) -> Tensors:
    """Open a safetensors file and verify its checksum."""
    try:
        check_header(path)
        with open_ordinary(path) as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != checksum:
                raise RunFolderError(
                    _damage_error(path, "its SHA-256 is not the one in state.json")
                )
        stored = _Stored(path, finite)
        _check_numbers(stored)
        if wrong := _impossible_average(stored):
            raise RunFolderError(_damage_error(path, f"{wrong} holds negative numbers"))
        return stored
    except FileNotFoundError as error:
        raise RunFolderError(_damage_error(path, "the file is missing")) from error
    except OSError as error:
        raise RunFolderError(f"{path} cannot be read: {error.strerror}.") from error
    except (SafetensorError, ValueError) as error:
        raise RunFolderError(
            _damage_error(path, f"it is not a safetensors file of weights ({error})")
        ) from error


def _check_training(
    path: Path, model: Tensors, training: Tensors, state: Mapping[str, Any]
) -> None:
    """Refuse moments that do not match the weights, because a step would corrupt memory."""
    kinds = state.get("moments", _ADAM)  # checkpoints without this entry are from Adam
    if kinds not in _KINDS:
        raise RunFolderError(_damage_error(path.parent / STATE, f"it names {kinds!r} as moments"))
    for name in model:
        if is_running_average(name):  # running averages have no moments
            continue
        for kind in (*kinds, _MASTER):
            moment = f"{kind}.{name}"
            if moment not in training:
                if kind == _MASTER:
                    continue
                raise RunFolderError(_damage_error(path, f"{moment} is missing"))
            if _shape(training, moment) != _shape(model, name):
                shapes = f"{_shape(training, moment)} instead of {_shape(model, name)}"
                raise RunFolderError(_damage_error(path, f"{moment} is {shapes}"))


def _check_numbers(stored: _Stored) -> None:
    """Refuse tensors that are empty or not floating-point."""
    for name in stored:
        if 0 in stored.shape(name) or stored.kind(name) not in _FLOATING:
            what = f"{stored.kind(name)} {list(stored.shape(name))}"
            raise ValueError(f"{name[:60]!r} holds {what}")


def _impossible_average(stored: _Stored) -> str | None:
    """Find a negative variance or expert load, which a conversion to 8 bits would hide."""
    averages = filter(is_running_average, stored)
    return next((n for n in averages if not n.endswith("mean") and (stored[n] < 0).any()), None)


def _size(path: Path) -> int:
    """Return the size of a file in bytes; 0 if it is missing."""
    return path.stat().st_size if path.exists() else 0


def _state_checksum(state: Mapping[str, Any]) -> str:
    """Hash the state without its own checksum."""
    checksums = {k: v for k, v in state["sha256"].items() if k != STATE}
    content = json.dumps({**state, "sha256": checksums}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def _check_signature(folder: Path, state: Mapping[str, Any], signature: Signature) -> None:
    """Refuse weights that were written with other subwords, or for another model or direction."""
    run = folder.parent.parent if folder.parent.name == "checkpoints" else folder.parent
    # Imported weights, and weights from before signatures, lack entries. These are not compared.
    if state.get("tokenizer") not in (None, signature["tokenizer"]):
        raise RunFolderError(
            f"the weights in {folder} must be used with the subwords of their training, but "
            f"{run} has another tokenizer. Copy tokenizer.json and the files next to it, or the "
            "whole folder, from the run of these weights."
        )
    settings = state.get("settings")
    if not isinstance(settings, dict):
        return
    trained, configured = LanguagePair.of(settings), LanguagePair.of(signature["settings"])
    if trained.contradicts(configured):
        raise RunFolderError(
            f"the weights in {folder} must be used for the language direction of their training, "
            f"{trained}, but {run / 'config.json'} says {configured}. Copy the whole run folder of "
            "these weights."
        )
    changed = [
        f"{key} was {settings[key]!r} and is now {value!r}"
        for key, value in signature["settings"].items()
        if key.startswith("model.")
        and key not in _ONLY_IN_TRAINING
        and settings.get(key, value) != value
    ]
    if changed:
        raise RunFolderError(
            f"the weights in {folder} must be used with the model settings of their training, "
            f"but in {run / 'config.json'} {'; '.join(changed)}. Restore that file, "
            "or copy the whole run folder."
        )


def _damage_error(path: Path, why: str) -> str:
    """Format the error message for a damaged file."""
    return (
        f"{path} must be a complete, unchanged checkpoint file, but {why}. Delete the folder "
        f"{path.parent} to continue from the previous checkpoint, or name another checkpoint with "
        "--weights."
    )
