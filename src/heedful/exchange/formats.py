"""
The interface for another toolkit: functions that read, write and run its models.

A reader or writer is a module with these functions; `heedful.exchange.registry` lists the modules.
A module that uses an option that other formats lack, such as `task`, lists it in `USES`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from heedful.config.model import ModelConfig
from heedful.config.schema import RunConfig
from heedful.config.search import SearchConfig
from heedful.data.tensor_shapes import check_header, is_empty_and_vast
from heedful.errors import ExchangeError
from heedful.exchange.parity import BOUND, ReferenceModel
from heedful.families.keymap import TensorUse
from heedful.files import read_within, write_synced
from heedful.settings.conditions import format_value
from heedful.tokenization.tokenizer import Tokenizer

_LARGEST = 1 << 26


@dataclass(frozen=True)
class ModelBundle:
    """A model during an import or export; an imported tokenizer stores the original ids."""

    config: RunConfig
    """Settings of the model; an imported model has recipe ``custom`` and reading ``own``."""
    weights: Mapping[str, Tensor]
    """Weights in fp32, by our names for them."""
    tokenizer: Tokenizer
    """The tokenizer with our ids."""
    notes: tuple[str, ...] = ()
    """Remarks for the user: what was left out or replaced."""
    use: TensorUse = field(default_factory=TensorUse)
    """How an import used the tensors of the original."""


@dataclass(frozen=True)
class ExportResult:
    """The result of an export; in the parity check, both sides use its search settings."""

    search: SearchConfig
    """Search settings of the exported model, in our terms."""
    notes: tuple[str, ...] = ()
    """Remarks for the user: what was left out or replaced."""
    bound: float = BOUND
    """Tolerance for log-probabilities in the parity check."""


@dataclass(frozen=True)
class ReadOptions:
    """Import options; options that a reader does not use are refused."""

    source_language: str = ""
    target_language: str = ""
    """Codes of the languages."""
    tokenizer: Path | None = None
    """A SentencePiece model or a file of BPE codes, or a folder that contains such files."""
    task: str = ""
    """Name of a task of the model, which sets a prefix and search settings."""
    source_prefix: str = ""
    """Text before each source line."""


@dataclass(frozen=True)
class WriteOptions:
    """Export options; only `positions` is ignored by writers that do not use it."""

    quantization: str = ""
    """Number format of the weights, if the file format has several number formats."""
    positions: int = 1024
    """Number of rows in a table of positions, if the file format needs such a table."""


@runtime_checkable
class Reader(Protocol):
    """The interface of a module that imports models."""

    def read(self, path: Path, options: ReadOptions) -> ModelBundle:
        """Read a model. Raises `ExchangeError`, which may list several reasons."""
        ...


@runtime_checkable
class ComparedReader(Reader, Protocol):
    """A reader whose toolkit can be run, so that each import is compared with the original."""

    def open_engine(self, path: Path, model: ModelBundle) -> ReferenceModel:
        """Open the original with its toolkit, or raise `MissingExtra`."""
        ...


@runtime_checkable
class Writer(Protocol):
    """The interface of a module that exports models."""

    def write(self, model: ModelBundle, folder: Path, options: WriteOptions) -> ExportResult:
        """Write a model. Raises `ExchangeError`, which may list several reasons."""
        ...

    def open_engine(self, folder: Path, model: ModelBundle) -> ReferenceModel:
        """Open the exported model with its toolkit, or raise `MissingExtra`."""
        ...


@dataclass
class Problems:
    """A collection of reasons against an operation, so that one error lists all of them."""

    messages: list[str] = field(default_factory=list)
    """Reasons so far."""

    def add_if(self, wrong: bool, reason: str) -> None:
        """Add a reason if it applies."""
        if wrong:
            self.messages.append(reason)

    def need(self, config: ModelConfig, name: str, fine: bool, wanted: object) -> None:
        """Add a reason unless a `model` setting has an allowed value."""
        value = getattr(config, name)
        self.add_if(
            not fine,
            f"model.{name} must be {format_value(wanted)}, but is {format_value(value)}",
        )

    def refuse(self, summary: str, advice: str) -> None:
        """Raise `ExchangeError` if there is any reason."""
        if self.messages:
            raise ExchangeError(f"{summary}: {'; '.join(self.messages)}. {advice}.")


def read_settings_file(path: Path) -> dict[str, Any]:
    """Read a JSON object of another toolkit; `ExchangeError` if it is not a valid object."""
    try:
        content = json.loads(read_within(path, _LARGEST).decode())
    except OSError as error:
        raise ExchangeError(f"{path} must be readable, but is not: {error.strerror}.") from error
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
                    raise ValueError(f"{name!r:.60} has the shape {shape}")
        return safetensors.torch.load_file(path)
    except FileNotFoundError as error:
        raise ExchangeError(f"{path} must exist, but does not; check the path.") from error
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise ExchangeError(
            f"{path} must be a complete safetensors file, but is not ({error})."
        ) from error
