"""
Sentence pairs as subword ids on disk.

Training reads pairs in any order, so ids are stored in flat files and only the parts in use are
read. The operating system caches these parts, so a corpus may be larger than the memory. For each
side a folder holds the concatenated ids of all sentences (``source.ids``) and the start of each
sentence (``source.offsets``). ``meta.json`` records their origin and the digests of all blocks, and
``report.json`` the counts of dropped pairs.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.data.cleaning.filter import CleaningReport
from heedful.data.encoded.flat_file import (
    OFFSET,
    CheckedValues,
    FlatFile,
    read_offsets,
    reading,
)
from heedful.errors import RunFolderError
from heedful.files import open_ordinary, read_within
from heedful.tokenization.tokenizer import Tokenizer

Ids = NDArray[np.unsignedinteger[Any]]
Lengths = NDArray[np.int32]

META = "meta.json"
"""Origin of the ids; this file is written last."""
FILES = ("source.ids", "source.offsets", "target.ids", "target.offsets")
"""Concatenated ids of both sides, and the start of each sentence."""
FORMAT = 1
"""Number of the format, in `META`."""
ID_TYPES = ("<u2", "<u4")
"""Types of an id: little-endian, two or four bytes."""
AGAIN = (
    "delete the folder and repeat the command that made it (heedful data prepare, or heedful "
    "train with --resume)"
)
"""Remedy for damage, for messages."""

_SIDES = ("source", "target")
# Older folders have no digests of blocks, only one digest of all files.
_NO_BLOCKS = {"ids": None, "offsets": None}


class FlatIds(NamedTuple):
    """The ids of several sentences, one sentence after the other."""

    ids: Ids
    lengths: Lengths
    """Ids of each sentence."""


@dataclass(frozen=True, eq=False)
class EncodedPairs:  # numpydoc ignore=PR02
    """Encoded sentence pairs, read from the disk as they are used."""

    folder: Path
    source_ids: CheckedValues
    """The ids of all source sentences, concatenated."""
    source_offsets: NDArray[np.int64]
    """Where each source sentence begins in `source_ids`, and the end of the last."""
    target_ids: CheckedValues
    """The ids of all target sentences."""
    target_offsets: NDArray[np.int64]
    """Where each target sentence begins."""
    report: CleaningReport
    """How many pairs were kept and dropped."""
    unknown_share: dict[str, float]
    """Share of unknown ids, 0 to 1, of “source” and “target”."""
    digest: str
    """BLAKE2b of the ids, 32 hexadecimal digits; equal if training reads the same ids."""

    @classmethod
    def open(cls, folder: Path, tokenizer: Tokenizer) -> "EncodedPairs":
        """
        Open the pairs of a folder.

        Offsets are read and checked here, the ids block by block when a pair is first read. Raises
        `RunFolderError` if a file is missing or damaged, or the ids belong to another tokenizer.
        """
        folder = Path(folder)
        meta = _read_meta(folder / META)
        try:
            if meta["tokenizer"] != tokenizer.fingerprint:
                raise RunFolderError(
                    f"The ids in {folder} must come from the tokenizer in use, but another "
                    "tokenizer made them; restore the tokenizer of this run if it was changed, or "
                    f"{AGAIN}."
                )
            limits = (tokenizer.source_size, tokenizer.target_size)
            arrays = [
                _open_side(folder, side, meta, limit)
                for side, limit in zip(_SIDES, limits, strict=True)
            ]
            if any(None in meta[side].get("blocks", _NO_BLOCKS).values() for side in _SIDES):
                _check_whole(folder, meta)
            (source_ids, source_offsets), (target_ids, target_offsets) = arrays
            return cls(
                folder,
                source_ids,
                source_offsets,
                target_ids,
                target_offsets,
                CleaningReport.from_json(meta["report"]),
                {side: float(meta[side]["unknown_share"]) for side in _SIDES},
                str(meta.get("digest", "")),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise RunFolderError(
                f"{folder / META} must describe encoded text, but it does not "
                f"({type(error).__name__}: {error}); {AGAIN}."
            ) from error

    def check(self) -> None:
        """Read all ids now, to detect damage; raises `RunFolderError`."""
        self.source_ids.check()
        self.target_ids.check()

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.source_offsets) - 1

    @cached_property
    def source_lengths(self) -> NDArray[np.int32]:
        """Subwords of each source sentence, shape (pairs,)."""
        return np.diff(self.source_offsets).astype(np.int32)

    @cached_property
    def target_lengths(self) -> NDArray[np.int32]:
        """Subwords of each target sentence, shape (pairs,)."""
        return np.diff(self.target_offsets).astype(np.int32)

    def source(self, index: int) -> Ids:
        """
        Return the ids of one source sentence, without special symbols.

        Raises `IndexError` if there is no such pair, `RunFolderError` if the file was cut off.
        """
        return _slice(self.source_ids, self.source_offsets, index)

    def target(self, index: int) -> Ids:
        """Return the ids of one target sentence, as `source` does."""
        return _slice(self.target_ids, self.target_offsets, index)

    def gather(self, rows: NDArray[np.integer[Any]]) -> tuple[FlatIds, FlatIds]:
        """Read the ids of both sides of some pairs, one pair after the other."""
        source, target = self.source_lengths[rows], self.target_lengths[rows]
        return (
            FlatIds(self.source_ids.gather(self.source_offsets[rows], source), source),
            FlatIds(self.target_ids.gather(self.target_offsets[rows], target), target),
        )

    def pair(self, index: int) -> tuple[Ids, Ids]:
        """
        Return the ids of both sides of a pair.

        Pairs keep the order of the text, without those that were dropped.

        Raises `IndexError` if there is no such pair.
        """
        return self.source(index), self.target(index)


def refuse_foreign(folder: Path) -> None:
    """
    Refuse to replace anything but encoded text.

    Only data that can be made again from the text may be replaced.

    Raises `RunFolderError` if something else is there.
    """
    if not folder.exists() or (folder / META).is_file():
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise RunFolderError(
            f"{folder} must be free for the encoded text, but it holds something else; choose "
            "another folder or move it away."
        )


def _read_meta(path: Path) -> dict[str, Any]:
    """Read ``meta.json``."""
    try:
        meta = json.loads(read_within(path))
    except FileNotFoundError as error:
        raise RunFolderError(
            f"{path.parent} must contain encoded text, but {path.name} is missing; encode the text "
            "first."
        ) from error
    except OSError as error:
        raise RunFolderError(
            f"{path} must be a file that can be read, but the system says "
            f"“{error.strerror or error}”; correct its permissions."
        ) from error
    except (ValueError, RecursionError) as error:
        raise RunFolderError(
            f"{path} must be JSON, but it cannot be read ({error}); {AGAIN}."
        ) from error
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise RunFolderError(
            f"{path} must describe encoded text of format {FORMAT}, but it does not; {AGAIN}."
        )
    return meta


def _open_side(
    folder: Path, side: str, meta: Mapping[str, Any], limit: int
) -> tuple[CheckedValues, NDArray[np.int64]]:
    """Open the ids and read the offsets of one side."""
    dtype, count = meta[side]["dtype"], int(meta[side]["ids"])
    if dtype not in ID_TYPES:
        raise ValueError(f"ids of type {dtype!r}")
    ids = _open_file(folder / f"{side}.ids", np.dtype(dtype), count)
    places = _open_file(folder / f"{side}.offsets", OFFSET, int(meta["pairs"]) + 1)
    digests = meta[side].get("blocks", _NO_BLOCKS)
    offsets = read_offsets(places, ids, digests["offsets"])
    return CheckedValues(ids, digests["ids"], limit=limit), offsets


def _check_whole(folder: Path, meta: Mapping[str, Any]) -> None:
    """Check a folder without block digests against the digest of each whole file."""
    total = blake2b(digest_size=16)
    for name in FILES:
        with open_ordinary(folder / name) as file:
            total.update(file_digest(file, blake2b).digest())
    if total.hexdigest() != meta.get("digest"):
        raise RunFolderError(
            f"The ids in {folder} must have the digest in {META}, but their digest differs: a "
            f"file was changed, or an older version of heedful wrote the ids; {AGAIN}."
        )


def _open_file(path: Path, dtype: np.dtype[Any], count: int) -> FlatFile:
    """Open a file and check its size."""
    with reading(path, AGAIN):
        size = path.stat().st_size
    if size != count * dtype.itemsize:
        raise RunFolderError(
            f"{path} must have {count * dtype.itemsize:,} bytes, but it has {size:,}: it was "
            f"cut off or changed; {AGAIN}."
        )
    if not count:
        raise ValueError(f"{path.name} is empty")
    return FlatFile(path, dtype, count, AGAIN)


def _slice(ids: CheckedValues, offsets: NDArray[np.int64], index: int) -> Ids:
    """Return the ids of one sentence."""
    if not 0 <= index < len(offsets) - 1:
        raise IndexError(f"pair {index} of {len(offsets) - 1}")
    return ids.read(int(offsets[index]), int(offsets[index + 1]))


@dataclass(frozen=True, eq=False)
class JoinedPairs:  # numpydoc ignore=PR02
    """
    Several corpora read as one.

    Nothing is copied. A single corpus is read the same way, so that training has one case only.
    """

    parts: tuple[EncodedPairs, ...]
    """The corpora, in the order in which their rows are numbered."""

    def __len__(self) -> int:
        """Count the pairs."""
        return int(self._edges[-1])

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Pairs of each corpus."""
        return tuple(map(len, self.parts))

    @cached_property
    def source_lengths(self) -> NDArray[np.int32]:
        """Subwords of each source sentence, shape (pairs,)."""
        return np.concatenate([part.source_lengths for part in self.parts])

    @cached_property
    def target_lengths(self) -> NDArray[np.int32]:
        """Subwords of each target sentence, shape (pairs,)."""
        return np.concatenate([part.target_lengths for part in self.parts])

    def pair(
        self, index: int
    ) -> tuple[NDArray[np.unsignedinteger[Any]], NDArray[np.unsignedinteger[Any]]]:
        """Return the ids of both sides of a pair."""
        part = int(np.searchsorted(self._edges, index, side="right")) - 1
        return self.parts[part].pair(index - int(self._edges[part]))

    def gather(self, rows: NDArray[np.integer[Any]]) -> tuple[FlatIds, FlatIds]:
        """Read the ids of both sides of some pairs, one pair after the other."""
        if len(self.parts) == 1:
            return self.parts[0].gather(rows)
        part = np.searchsorted(self._edges, rows, side="right") - 1
        every = self.source_lengths[rows], self.target_lengths[rows]
        sides = [FlatIds(np.empty(int(lengths.sum()), np.uint32), lengths) for lengths in every]
        firsts = [np.cumsum(lengths) - lengths for lengths in every]  # place of each sentence
        for number in np.unique(part):
            chosen = part == number
            gathered = self.parts[number].gather(rows[chosen] - int(self._edges[number]))
            for flat, side, first in zip(gathered, sides, firsts, strict=True):
                within = np.arange(len(flat.ids)) - np.repeat(
                    np.cumsum(flat.lengths) - flat.lengths, flat.lengths
                )
                side.ids[np.repeat(first[chosen], flat.lengths) + within] = flat.ids
        source, target = sides
        return source, target

    @cached_property
    def _edges(self) -> NDArray[np.int64]:
        """The first row of each corpus, and the end."""
        return np.cumsum([0, *self.sizes])
