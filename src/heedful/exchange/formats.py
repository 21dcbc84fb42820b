"""
What a format is: how a model of another toolkit is read, written, and asked for comparison.

A reader or writer is an object in a module of its own; `heedful.exchange.convert` finds it by
name. Between toolkits a model is a `ModelBundle`: settings, weights by our names, tokenizer.
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

from heedful.config.schema import RunConfig, SearchConfig
from heedful.data.tensor_shapes import check_header, is_empty_and_vast
from heedful.errors import ExchangeError, MissingExtra
from heedful.exchange.parity import ReferenceModel
from heedful.files import read_within
from heedful.tokenization.tokenizer import Tokenizer

_LARGEST = 1 << 26


@dataclass(frozen=True)
class ModelBundle:
    """
    Hold a model on its way from one toolkit to another.

    Attributes
    ----------
    config : RunConfig
        Its settings; recipe ``custom``, reading ``own`` where it is not ours.
    weights : mapping of str to Tensor
        By our names, fp32.
    tokenizer : Tokenizer
        With our ids.
    notes : tuple of str, default ()
        What its user should know: what was left behind or stands for something else.

    Notes
    -----
    An imported tokenizer remembers the original ids, see
    `heedful.tokenization.id_mapping`.
    """

    config: RunConfig
    weights: Mapping[str, Tensor]
    tokenizer: Tokenizer
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExportResult:
    """
    Say what became of a model that was written.

    Attributes
    ----------
    search : SearchConfig
        How the other toolkit searches by what was written, in our settings.
    notes : tuple of str, default ()
        What its user should know: what was left behind or stands for something else.

    Notes
    -----
    Translations are compared by the same search on both sides.
    """

    search: SearchConfig
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReadOptions:
    """
    Say what a folder or file does not say itself.

    Attributes
    ----------
    source_language, target_language : str, default ''
        Codes of the languages.
    tokenizer : Path, optional
        A sentencepiece model or codes file that cut the text; or a folder of such.

    Notes
    -----
    A reader ignores what it has no use for.
    """

    source_language: str = ""
    target_language: str = ""
    tokenizer: Path | None = None


@dataclass(frozen=True)
class WriteOptions:
    """
    Say how a model is to be written.

    Attributes
    ----------
    quantization : str, default ''
        Number format of the weights, where the format has several.
    positions : int, default 1024
        Rows of a table of positions, where the format needs one.

    Notes
    -----
    A writer ignores what it has no use for.
    """

    quantization: str = ""
    positions: int = 1024


@runtime_checkable
class Reader(Protocol):
    """
    Read models of another toolkit.

    Attributes
    ----------
    name : str
        What it is called on the command line.
    bound : float
        Largest difference between log-probabilities that counts as equal.

    Notes
    -----
    Nothing in a file is executed.
    """

    name: str
    bound: float

    def read(self, path: Path, options: ReadOptions) -> ModelBundle:
        """
        Read a model.

        Parameters
        ----------
        path : Path
            Folder or file.
        options : ReadOptions
            What it does not say.

        Returns
        -------
        ModelBundle
            The model.

        Notes
        -----
        Raises `ExchangeError` with all reasons at once.
        """
        ...

    def reference(self, path: Path, model: ModelBundle) -> ReferenceModel:
        """
        Open the original, to compare with.

        Parameters
        ----------
        path : Path
            As for `read`.
        model : ModelBundle
            What `read` made of it.

        Returns
        -------
        ReferenceModel
            The toolkit itself where it can be installed, else an independent computation.

        Notes
        -----
        Raises `MissingExtra` if the toolkit is needed and not installed.
        """
        ...


@runtime_checkable
class Writer(Protocol):
    """
    Write models for another toolkit.

    Attributes
    ----------
    name : str
        What it is called on the command line.

    Notes
    -----
    What cannot be expressed is refused, with all reasons at once.
    """

    name: str

    def bound(self, options: WriteOptions) -> float:
        """
        Say how equal it must be.

        Parameters
        ----------
        options : WriteOptions
            A rounded model differs more.

        Returns
        -------
        float
            Largest difference between log-probabilities.

        Notes
        -----
        Above it the export fails.
        """
        ...

    def write(self, model: ModelBundle, folder: Path, options: WriteOptions) -> ExportResult:
        """
        Write a model.

        Parameters
        ----------
        model : ModelBundle
            A run's model.
        folder : Path
            An empty folder.
        options : WriteOptions
            How.

        Returns
        -------
        ExportResult
            How the other toolkit will search.

        Notes
        -----
        Raises `ExchangeError` with all reasons at once.
        """
        ...

    def reference(self, folder: Path, model: ModelBundle) -> ReferenceModel:
        """
        Open what was written, by the toolkit that it was written for.

        Parameters
        ----------
        folder : Path
            As for `write`.
        model : ModelBundle
            What was written.

        Returns
        -------
        ReferenceModel
            The other toolkit's model.

        Notes
        -----
        Raises `MissingExtra` if it is not installed.
        """
        ...


@dataclass
class Problems:
    """
    Collect why something cannot be done, to say all of it at once.

    Attributes
    ----------
    messages : list of str
        So far.

    Notes
    -----
    One run of a command should be enough to learn everything that is in the way.
    """

    messages: list[str] = field(default_factory=list)

    def add_if(self, wrong: bool, reason: str) -> None:
        """
        Note a reason.

        Parameters
        ----------
        wrong : bool
            Whether it holds.
        reason : str
            What is in the way, without a full stop.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        In the order in which they will be read.
        """
        if wrong:
            self.messages.append(reason)

    def refuse(self, what: str, advice: str) -> None:
        """
        Refuse if there is any reason.

        Parameters
        ----------
        what : str
            What cannot be done.
        advice : str
            What to do instead, a sentence without its full stop.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        Raises `ExchangeError`.
        """
        if self.messages:
            raise ExchangeError(f"{what}: {'; '.join(self.messages)}. {advice}.")


def read_settings_file(path: Path) -> dict[str, Any]:
    """
    Read a JSON object of another toolkit.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict
        Its content.

    Notes
    -----
    Raises `ExchangeError` if it is missing, damaged or something else.
    """
    try:
        content = json.loads(read_within(path, _LARGEST).decode())
    except OSError as error:
        raise ExchangeError(f"{path} must be there to read, but: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise ExchangeError(f"{path} must hold JSON, but does not ({error}).") from error
    if not isinstance(content, dict):
        raise ExchangeError(f"{path} must hold a JSON object, but holds something else.")
    return content


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """
    Read the tensors of a safetensors file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict of str to Tensor
        By their names.

    Notes
    -----
    Raises `ExchangeError` if it is missing or damaged. Nothing in it is executed.
    """
    try:
        check_header(path)
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118
                shape = file.get_slice(name).get_shape()
                if is_empty_and_vast(shape):
                    raise ValueError(f"{name!r:.60} has the sizes {shape}")
        return safetensors.torch.load_file(path)
    except FileNotFoundError as error:
        raise ExchangeError(f"{path} must be there to read, but is not.") from error
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise ExchangeError(f"{path} must be a whole safetensors file, but: {error}.") from error


def import_extra(module: str, purpose: str) -> ModuleType:
    """
    Import what an extra brings.

    Parameters
    ----------
    module : str
        Its name.
    purpose : str
        What it is needed for, as the beginning of a sentence.

    Returns
    -------
    module
        It.

    Notes
    -----
    Raises `MissingExtra` with the command that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"{purpose} needs {module.partition('.')[0]}, which is not installed; install it with: "
            "pip install 'heedful[exchange]'"
        ) from error
