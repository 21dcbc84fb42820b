"""
The text of the training pairs, kept so that each epoch can sample its subwords.

Sampled subwords differ from epoch to epoch, so the ids of one epoch are not enough. The text is
stored as UTF-8 in flat files next to the ids, in the order of the pairs. ``text.json`` holds the
digests of their blocks.
"""

import json
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from heedful.data.encoded.dataset import AGAIN
from heedful.data.encoded.flat_file import FlatRows, FlatWriter, open_flat
from heedful.errors import RunFolderError
from heedful.files import new_file, read_within, writing

_SIDES = ("source", "target")
_BYTE = np.dtype("u1")
_DIGESTS = "text.json"
_CHUNK_PAIRS = 10_000


@dataclass(frozen=True, eq=False)
class Texts:  # numpydoc ignore=PR02
    """Sentence pairs as text, read from the disk as it is used."""

    sides: tuple[FlatRows, FlatRows]
    """All source sentences in UTF-8, and all target sentences."""

    @classmethod
    def open(cls, folder: Path) -> "Texts":
        """
        Open the text that `write_texts` wrote.

        Raises `RunFolderError` if a file is missing or damaged; the text itself is checked block by
        block as it is read.
        """
        folder = Path(folder)
        digests = _read_digests(folder / _DIGESTS)
        source, target = (
            open_flat(folder / text, folder / offsets, _BYTE, digests, AGAIN)
            for text, offsets in map(_names, _SIDES)
        )
        if len(source) != len(target):
            raise RunFolderError(
                f"{folder} must have as many source sentences as target sentences, but has "
                f"{len(source):,} and {len(target):,}; {AGAIN}."
            )
        return cls((source, target))

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.sides[0])

    def pairs(self, first: int, last: int) -> tuple[list[str], list[str]]:
        """
        Read some pairs.

        `first`: index of the first pair, from 0.

        Indices past the end are ignored, as in a slice.
        """
        sources, targets = (_lines(side, first, last) for side in self.sides)
        return sources, targets


def write_texts(pairs: Iterable[tuple[str, str]], folder: Path) -> Texts:
    """
    Write the text of the training pairs, in constant memory.

    A sentence may contain any characters, even line feeds, except lone surrogates.

    Raises `StorageError` if the disk is full or the folder cannot be written.
    """
    with writing(folder):
        with ExitStack() as files:
            writers = [
                FlatWriter(*(files.enter_context(new_file(folder / name)) for name in names))
                for names in map(_names, _SIDES)
            ]
            rest = iter(pairs)
            while chunk := list(islice(rest, _CHUNK_PAIRS)):
                for writer, lines in zip(writers, zip(*chunk, strict=True), strict=True):
                    encoded = [line.encode() for line in lines]
                    writer.append(b"".join(encoded), np.array([*map(len, encoded)], np.int64))
        digests: dict[str, list[str]] = {}
        for side, writer in zip(_SIDES, writers, strict=True):
            digests |= zip(_names(side), writer.blocks(), strict=True)
        with new_file(folder / _DIGESTS) as file:
            file.write((json.dumps(digests, indent=2) + "\n").encode())
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
            f"{path} must contain the digests of the text of the pairs, but it cannot be read "
            f"({reason}); {AGAIN}."
        ) from error
    names = {name for side in _SIDES for name in _names(side)}
    if not isinstance(digests, dict) or digests.keys() != names:
        raise RunFolderError(
            f"{path} must contain the digests of {', '.join(sorted(names))}, but does not; {AGAIN}."
        )
    return digests


def _lines(side: FlatRows, first: int, last: int) -> list[str]:
    """Return sentences from the text of a side."""
    offsets = side.offsets[first : last + 1]
    if len(offsets) < 2:
        return []
    begin = int(offsets[0])
    content = side.values.read(begin, int(offsets[-1])).tobytes()
    places = (offsets - begin).tolist()
    return [content[a:b].decode() for a, b in pairwise(places)]
