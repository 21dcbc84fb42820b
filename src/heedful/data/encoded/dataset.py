"""
Sentence pairs as subword ids on disk.

Training reads pairs in any order, so ids are stored in flat files and only the parts in use are
read. So a corpus may be larger than main memory; the operating system caches the parts in use. For
each side, a folder holds the concatenated ids of all sentences (``source.ids``) and the start of
each sentence (``source.offsets``). ``meta.json`` records their origin and the digests of all
blocks, and ``report.json`` the counts of dropped pairs.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.data.cleaning.filter import CleaningReport
from heedful.data.encoded.flat_file import FlatRows, open_flat, reading
from heedful.errors import RunFolderError
from heedful.files import read_within
from heedful.tokenization.tokenizer import Tokenizer

Ids = NDArray[np.unsignedinteger[Any]]
Lengths = NDArray[np.int32]

META = "meta.json"
"""Origin of the ids; this file is written last."""
FILES = ("source.ids", "source.offsets", "target.ids", "target.offsets")
"""Concatenated ids of both sides, and the start of each sentence."""
FORMAT = 1
"""Version of the format, stored in `META`."""
ID_TYPES = ("<u2", "<u4")
"""Types of an id: little-endian, two or four bytes."""
AGAIN = (
    "delete the folder and repeat the command that wrote it (heedful data prepare, or heedful "
    "train with --resume)"
)
"""Remedy for damage, for use in error messages."""

_SIDES = ("source", "target")


class FlatIds(NamedTuple):
    """The ids of several sentences, one sentence after the other."""

    ids: Ids
    lengths: Lengths
    """Number of ids of each sentence."""


@dataclass(frozen=True, eq=False)
class EncodedPairs:  # numpydoc ignore=PR02
    """Encoded sentence pairs, read from the disk as they are used."""

    folder: Path
    sides: tuple[FlatRows, FlatRows]
    """The ids of all source sentences, and of all target sentences."""
    report: CleaningReport
    """Counts of kept and dropped pairs."""
    unknown_share: dict[str, float]
    """Share of unknown ids, from 0 to 1, for “source” and “target”."""
    digest: str
    """BLAKE2b of the ids, 32 hexadecimal digits; equal if training reads the same ids."""

    @classmethod
    def open(cls, folder: Path, tokenizer: Tokenizer) -> "EncodedPairs":
        """
        Open the pairs of a folder.

        Offsets are read and checked here; ids are checked block by block when they are first read.
        Raises `RunFolderError` if a file is missing or damaged, or the ids belong to another
        tokenizer.
        """
        folder = Path(folder)
        meta = _read_meta(folder / META)
        try:
            if meta["tokenizer"] != tokenizer.fingerprint:
                raise RunFolderError(
                    f"The ids in {folder} must come from the tokenizer in use, but they come from "
                    "another tokenizer; restore the tokenizer of this run if it was changed, or "
                    f"{AGAIN}."
                )
            limits = (tokenizer.source_size, tokenizer.target_size)
            source, target = (
                _open_side(folder, side, meta, limit)
                for side, limit in zip(_SIDES, limits, strict=True)
            )
            return cls(
                folder,
                (source, target),
                CleaningReport.from_json(meta["report"]),
                {side: float(meta[side]["unknown_share"]) for side in _SIDES},
                str(meta.get("digest", "")),
            )
        except KeyError as error:
            raise RunFolderError(
                f"{folder / META} must describe encoded text, but the entry {error} is missing; "
                f"{AGAIN}."
            ) from error
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise RunFolderError(
                f"{folder / META} must describe encoded text, but it does not "
                f"({type(error).__name__}: {error}); {AGAIN}."
            ) from error

    def check(self) -> None:
        """Read all ids now; raises `RunFolderError` if any are damaged."""
        for side in self.sides:
            side.values.check()

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.sides[0])

    @property
    def source_lengths(self) -> NDArray[np.int32]:
        """Number of subwords of each source sentence, shape (pairs,)."""
        return self.sides[0].lengths

    @property
    def target_lengths(self) -> NDArray[np.int32]:
        """Number of subwords of each target sentence, shape (pairs,)."""
        return self.sides[1].lengths

    def gather(self, rows: NDArray[np.integer[Any]]) -> tuple[FlatIds, FlatIds]:
        """Read the ids of both sides of some pairs, one pair after the other."""
        source, target = (FlatIds(*side.gather(rows)) for side in self.sides)
        return source, target

    def pair(self, index: int) -> tuple[Ids, Ids]:
        """
        Return the ids of both sides of a pair, without special symbols.

        Pairs are in the order of the text; dropped pairs are left out.

        Raises `IndexError` if there is no such pair, `RunFolderError` if a file is truncated.
        """
        source, target = (side.row(index) for side in self.sides)
        return source, target


def _read_meta(path: Path) -> dict[str, Any]:
    """Read ``meta.json``."""
    try:
        with reading(path, "correct its permissions"):
            if not path.exists():
                raise RunFolderError(
                    f"{path.parent} must contain encoded text, but {path.name} is missing; encode "
                    "the text first."
                )
            meta = json.loads(read_within(path))
    except (ValueError, RecursionError) as error:
        raise RunFolderError(
            f"{path} must be JSON, but it cannot be read ({error}); {AGAIN}."
        ) from error
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise RunFolderError(
            f"{path} must describe encoded text of format {FORMAT}, but it does not; {AGAIN}."
        )
    return meta


def _open_side(folder: Path, side: str, meta: Mapping[str, Any], limit: int) -> FlatRows:
    """Open the ids and read the offsets of one side."""
    dtype, blocks = meta[side]["dtype"], meta[side]["blocks"]
    if dtype not in ID_TYPES:
        raise ValueError(f"ids of type {dtype!r}")
    ids, offsets = f"{side}.ids", f"{side}.offsets"
    digests = {ids: blocks["ids"], offsets: blocks["offsets"]}
    rows = open_flat(folder / ids, folder / offsets, np.dtype(dtype), digests, AGAIN, limit)
    if not len(rows) or len(rows) != meta["pairs"]:
        raise ValueError(f"{len(rows)} pairs in {folder}")
    return rows


@dataclass(frozen=True, eq=False)
class JoinedPairs:  # numpydoc ignore=PR02
    """
    Several corpora read as one.

    Nothing is copied. A single corpus is read the same way, so that training has only one case to
    handle.
    """

    parts: tuple[EncodedPairs, ...]
    """The corpora, in the order in which their rows are numbered."""

    def __len__(self) -> int:
        """Count the pairs."""
        return int(self._edges[-1])

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of pairs of each corpus."""
        return tuple(map(len, self.parts))

    @cached_property
    def source_lengths(self) -> NDArray[np.int32]:
        """Number of subwords of each source sentence, shape (pairs,)."""
        return np.concatenate([part.source_lengths for part in self.parts])

    @cached_property
    def target_lengths(self) -> NDArray[np.int32]:
        """Number of subwords of each target sentence, shape (pairs,)."""
        return np.concatenate([part.target_lengths for part in self.parts])

    def pair(self, index: int) -> tuple[Ids, Ids]:
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
        firsts = [np.cumsum(lengths) - lengths for lengths in every]  # start of each sentence
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
        """The first row of each corpus, and the total number of rows."""
        return np.cumsum([0, *self.sizes])
