"""
The interface of a toolkit, which reads, writes and compares its models.

A reader or writer is a module with these functions; `heedful.exchange.registry` names it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from heedful.config.schema import RunConfig
from heedful.config.search import SearchConfig
from heedful.data.tensor_shapes import check_header, is_empty_and_vast
from heedful.errors import ExchangeError, MissingExtra
from heedful.exchange.parity import ReferenceModel
from heedful.families.keymap import TensorUse
from heedful.files import read_within, write_synced
from heedful.tokenization.tokenizer import Tokenizer

_LARGEST = 1 << 26


@dataclass(frozen=True)
class ModelBundle:
    """A model in transfer between toolkits; an imported tokenizer keeps the original ids."""

    config: RunConfig
    """Its settings; recipe ``custom`` and reading ``own`` for foreign models."""
    weights: Mapping[str, Tensor]
    """fp32 weights by our names."""
    tokenizer: Tokenizer
    """The tokenizer with our ids."""
    notes: tuple[str, ...] = ()
    """Remarks for the user: what was left out or replaced."""
    use: TensorUse = field(default_factory=TensorUse)
    """How the tensors of an original were used."""


@dataclass(frozen=True)
class ExportResult:
    """The result of an export; both sides translate with the same search."""

    search: SearchConfig
    """Search settings of the exported model, in our terms."""
    notes: tuple[str, ...] = ()
    """Remarks for the user: what was left out or replaced."""


@dataclass(frozen=True)
class ReadOptions:
    """Import options that files do not contain; a reader ignores those that it does not need."""

    source_language: str = ""
    target_language: str = ""
    """Codes of the languages."""
    tokenizer: Path | None = None
    """A SentencePiece model or codes file, or a folder of such."""
    task: str = ""
    """Name of a task of the model, which sets a prefix and search settings."""
    source_prefix: str = ""
    """Text before each source line."""


@dataclass(frozen=True)
class WriteOptions:
    """Export options; a writer ignores those that it does not need."""

    quantization: str = ""
    """Number format of the weights, where the format has several."""
    positions: int = 1024
    """Rows of a table of positions, where the format needs one."""


@runtime_checkable
class Reader(Protocol):
    """The interface of a module that imports."""

    def read(self, path: Path, options: ReadOptions) -> ModelBundle:
        """Read a model. Raises `ExchangeError` with all reasons at once."""
        ...


@runtime_checkable
class ComparedReader(Reader, Protocol):
    """A reader whose toolkit can be run, so that each import is compared with the original."""

    BOUND: float
    """Tolerance for differences of log-probabilities."""

    def open_engine(self, path: Path, model: ModelBundle) -> ReferenceModel:
        """Open the original with its toolkit, or raise `MissingExtra`."""
        ...


@runtime_checkable
class Writer(Protocol):
    """The interface of a module that exports; it refuses a model with all reasons at once."""

    def bound(self, options: WriteOptions) -> float:
        """Return the tolerance of the parity check; the export fails above it."""
        ...

    def write(self, model: ModelBundle, folder: Path, options: WriteOptions) -> ExportResult:
        """Write a model. Raises `ExchangeError` with all reasons at once."""
        ...

    def open_engine(self, folder: Path, model: ModelBundle) -> ReferenceModel:
        """Open the exported model with its toolkit, or raise `MissingExtra`."""
        ...


@dataclass
class Problems:
    """A collection of reasons against an operation, so that one run shows all of them."""

    messages: list[str] = field(default_factory=list)
    """Reasons so far."""

    def add_if(self, wrong: bool, reason: str) -> None:
        """Add a reason if it applies."""
        if wrong:
            self.messages.append(reason)

    def refuse(self, summary: str, advice: str) -> None:
        """Raise an error if there is any reason."""
        if self.messages:
            raise ExchangeError(f"{summary}: {'; '.join(self.messages)}. {advice}.")


def read_settings_file(path: Path) -> dict[str, Any]:
    """Read a JSON object of another toolkit; `ExchangeError` if it is not a valid object."""
    try:
        content = json.loads(read_within(path, _LARGEST).decode())
    except OSError as error:
        raise ExchangeError(f"{path} must be readable, but: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise ExchangeError(f"{path} must be a JSON file, but is not ({error}).") from error
    if not isinstance(content, dict):
        raise ExchangeError(f"{path} must contain a JSON object, but contains something else.")
    return content


def write_settings_file(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object for another toolkit."""
    write_synced(path, json.dumps(content, indent=2, ensure_ascii=False).encode())


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file without executing anything; `ExchangeError` if it is damaged."""
    try:
        check_header(path)
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118
                shape = file.get_slice(name).get_shape()
                if is_empty_and_vast(shape):
                    raise ValueError(f"{name!r:.60} has the sizes {shape}")
        return safetensors.torch.load_file(path)
    except FileNotFoundError as error:
        raise ExchangeError(f"{path} must exist, but does not.") from error
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise ExchangeError(f"{path} must be a complete safetensors file, but: {error}.") from error


def import_extra(module: str, purpose: str) -> ModuleType:
    """Import a package of an extra. Raises `MissingExtra` with the command that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"{purpose} needs {module.partition('.')[0]}, which is not installed; install it with: "
            "pip install 'heedful[exchange]'"
        ) from error
