"""The interface of training data, raw or prepared, with its fingerprint."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from heedful.arguments import Files
from heedful.config.schema import RunConfig
from heedful.data.encoded.dataset import EncodedPairs
from heedful.data.overlap.leaks import HeldOutPairs
from heedful.files import open_ordinary
from heedful.runs.folder import RunFolder
from heedful.text.file_formats import TextSource
from heedful.tokenization.tokenizer import Tokenizer

# Prints a line for the user.
Say = Callable[[str], object]
# For each side of a text: names and sizes of its files, with their parts and tags if any.
Sizes = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Preparation:
    """Where and how training data is prepared."""

    folder: RunFolder
    config: RunConfig
    processes: int
    """Number of worker processes; 0 for one per core."""
    say: Say
    """Called with messages and, every ten seconds, with the progress."""
    held_out: HeldOutPairs | None = None
    """Held-out pairs; their repetitions in the training text are reported during encoding."""


@runtime_checkable
class TrainingData(Protocol):
    """The interface of training data: raw text, or a prepared folder."""

    def configure(self, config: RunConfig) -> RunConfig:
        """Fill in settings that depend on the data, such as languages from file names."""
        ...

    def fingerprint(self) -> Sizes:
        """List the files and their sizes; a resumed run is checked against them."""
        ...

    def describe(self, config: RunConfig) -> str:
        """Check the data and describe its size."""
        ...

    def prepare(self, job: Preparation) -> None:
        """Provide a tokenizer and ids to a run; existing files are not created again."""
        ...

    def ids(self, folder: RunFolder) -> list[Path]:
        """Return the folders of a run's ids, in the run itself or in the prepared folder."""
        ...

    def weights(self) -> list[float] | None:
        """Return the relative weights of the corpora; None if their sizes decide."""
        ...

    def report(self, pairs: Sequence[EncodedPairs], tokenizer: Tokenizer) -> Iterable[str]:
        """Describe how many pairs were kept and dropped."""
        ...

    def held_out_notes(self, pairs: Sequence[EncodedPairs], files: Sizes) -> Iterable[str]:
        """List what is known of the validation text and not in `report`; `files`: of the run."""
        ...


@dataclass(frozen=True, kw_only=True)
class UnpreparedText:
    """Training data whose subwords are trained or taken from a given tokenizer."""

    tokenizer: str | Path | None = None
    """A tokenizer for `tokenizer_from_files` to use instead of training one."""
    keep_target: bool = False
    """Whether the tokenizer's target symbols are kept, because inherited weights use them."""

    def keeping_target(self, keep_target: bool) -> Self:
        """Return the same text with another `keep_target`."""
        return replace(self, keep_target=keep_target)

    def held_out_notes(self, pairs: Sequence[EncodedPairs], files: Sizes) -> Iterable[str]:
        """List nothing, because `report` has the notes."""
        del pairs, files
        return ()


def as_list(files: Files) -> Sequence[str | Path]:
    """Return files as a list, even if there is only one file."""
    return [files] if isinstance(files, str | Path) else files


def file_records(texts: Iterable[TextSource]) -> list[dict[str, Any]]:
    """
    List the records that identify files.

    Returns the name and size in bytes of each file, and the part that is read and its tag, if any.

    Names have no folders, so that a moved corpus stays the same corpus.
    """
    return [
        {"file": text.path.name, "bytes": text.path.stat().st_size}
        | ({"part": text.part} if text.part else {})
        | ({"tag": text.tag} if text.tag else {})
        for text in texts
    ]


def digest_of(path: Path) -> str:
    """Return the digest of a file, because a changed text may have the same size."""
    with open_ordinary(path) as file:
        return file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()


def without_keys(records: Iterable[dict[str, Any]], *keys: str) -> list[dict[str, Any]]:
    """Drop keys from the records of files, such as digests, which older runs lack."""
    return [{key: value for key, value in record.items() if key not in keys} for record in records]


def has_subwords(folder: RunFolder) -> bool:
    """Return whether a folder has a complete tokenizer."""
    return (folder.path / "tokenizer.json").exists()
