"""
The text of the training pairs, kept so that each epoch can sample its subwords.

Sampled subwords differ from epoch to epoch, so the ids of one epoch are not enough. The text is
stored as UTF-8 in flat files next to the ids, in the order of the pairs. ``text.json`` holds the
digests of their blocks.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from heedful.data.encoded.dataset import AGAIN
from heedful.data.encoded.flat_file import CheckedValues, FlatWriter, open_flat
from heedful.errors import RunFolderError, StorageError
from heedful.files import new_file, read_within

_SIDES = ("source", "target")
_BYTE = np.dtype("u1")
_DIGESTS = "text.json"
_CHUNK_PAIRS = 10_000


@dataclass(frozen=True, eq=False)
class Texts:  # numpydoc ignore=PR02
    """Sentence pairs as text, read from the disk as it is used."""

    folder: Path
    source_bytes: CheckedValues
    """All source sentences in UTF-8, concatenated."""
    source_offsets: NDArray[np.int64]
    """Where each source sentence begins, and the end of the last."""
    target_bytes: CheckedValues
    """All target sentences."""
    target_offsets: NDArray[np.int64]
    """Where each target sentence begins."""

    @classmethod
    def open(cls, folder: Path) -> "Texts":
        """
        Open the text that `TextWriter` wrote.

        Raises `RunFolderError` if a file is missing or damaged; the text itself is checked block by
        block as it is read.
        """
        folder = Path(folder)
        digests = _read_digests(folder / _DIGESTS)
        source, target = (
            open_flat(folder / text, folder / offsets, _BYTE, digests, AGAIN)
            for text, offsets in map(_names, _SIDES)
        )
        if len(source[1]) != len(target[1]):
            raise RunFolderError(
                f"{folder} must hold as many source as target sentences, but it has "
                f"{len(source[1]) - 1:,} and {len(target[1]) - 1:,}; {AGAIN}."
            )
        return cls(folder, *source, *target)

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.source_offsets) - 1

    def pairs(self, first: int, last: int) -> tuple[list[str], list[str]]:
        """
        Read some pairs.

        `first`: number of the first pair, from 0.

        Numbers past the end are left out, as in a slice.
        """
        return (
            _lines(self.source_bytes, self.source_offsets[first : last + 1]),
            _lines(self.target_bytes, self.target_offsets[first : last + 1]),
        )


class TextWriter:
    """
    A writer of text pairs to a folder.

    A context manager: the files are on disk when its block ends. They are not renamed, because
    `heedful.data.encoded.flat_file.whole_folder` renames the folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = Path(folder)
        self._files = ExitStack()
        self._sides: list[FlatWriter] = []

    def __enter__(self) -> "TextWriter":
        """Open the files."""
        with ExitStack() as files:
            for names in map(_names, _SIDES):
                opened = [files.enter_context(new_file(self._folder / name)) for name in names]
                self._sides.append(FlatWriter(*opened))
            self._files = files.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the files and write their digests."""
        self._files.__exit__(kind, error, trace)
        if kind is None:
            digests: dict[str, list[str]] = {}
            for side, writer in zip(_SIDES, self._sides, strict=True):
                digests |= zip(_names(side), writer.blocks(), strict=True)
            with new_file(self._folder / _DIGESTS) as file:
                file.write((json.dumps(digests, indent=2) + "\n").encode())

    def append(self, sources: Sequence[str], targets: Sequence[str]) -> None:
        """Append pairs; a sentence may contain anything but lone surrogates, even line feeds."""
        for side, lines in zip(self._sides, (sources, targets), strict=True):
            encoded = [line.encode() for line in lines]
            side.append(b"".join(encoded), np.array([*map(len, encoded)], np.int64))


def write_texts(pairs: Iterable[tuple[str, str]], folder: Path) -> Texts:
    """
    Write the text of the training pairs.

    In constant memory. Callers that read the pairs in parts use `TextWriter`.

    Raises `StorageError` if the disk is full or the folder cannot be written.
    """
    try:
        with TextWriter(folder) as writer:
            rest = iter(pairs)
            while chunk := list(islice(rest, _CHUNK_PAIRS)):
                writer.append([source for source, _ in chunk], [target for _, target in chunk])
    except OSError as error:
        raise StorageError(
            f"The text of the pairs could not be written to {folder}: "
            f"“{error.strerror or error}”; make room or choose another folder."
        ) from error
    return Texts.open(folder)


def _names(side: str) -> tuple[str, str]:
    """Return the file names of a side."""
    return f"{side}.text", f"{side}.text.offsets"


def _read_digests(path: Path) -> dict[str, list[str]]:
    """Read the digests of the blocks of all files."""
    try:
        digests = json.loads(read_within(path))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RunFolderError(
            f"{path} must hold the digests of the text of the pairs, but it cannot be read "
            f"({reason}); {AGAIN}."
        ) from error
    names = {name for side in _SIDES for name in _names(side)}
    if not isinstance(digests, dict) or digests.keys() != names:
        raise RunFolderError(
            f"{path} must hold the digests of {', '.join(sorted(names))}, but does not; {AGAIN}."
        )
    return digests


def _lines(text: CheckedValues, offsets: NDArray[np.int64]) -> list[str]:
    """Return sentences from the text of a side."""
    if len(offsets) < 2:
        return []
    begin = int(offsets[0])
    content = text.read(begin, int(offsets[-1])).tobytes()
    places = (offsets - begin).tolist()
    return [content[a:b].decode() for a, b in pairwise(places)]
