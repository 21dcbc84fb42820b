"""
Sentence pairs as subword ids on disk.

Training reads pairs in any order, so the ids lie in flat files that are mapped into memory: the
system keeps what is used and drops the rest, and a corpus may be larger than the memory. A folder
holds, for each side, the ids of all sentences end to end (``source.ids``) and where each one
begins (``source.offsets``); ``meta.json`` tells what they were made from.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from io import BufferedWriter
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.clean import CleaningReport, PairFilter
from heedful.data.corpus import Corpus
from heedful.data.tokenizer import UNKNOWN, Tokenizer
from heedful.errors import RunFolderError, StorageError, TextError

_META = "meta.json"
_FORMAT = 1
_SIDES = ("source", "target")
_FILES = ("source.ids", "source.offsets", "target.ids", "target.offsets")
_AGAIN = "delete the folder, and the text is encoded again"
_ID_TYPES = ("<u2", "<u4")
_OFFSET = np.dtype("<i8")
_CHUNK_PAIRS = 10_000
_CHUNK_CHARACTERS = 4_000_000


@dataclass(frozen=True, eq=False)
class EncodedPairs:  # numpydoc ignore=PR02
    """
    Encoded sentence pairs, mapped into memory.

    Attributes
    ----------
    folder : Path
        Where they lie.
    source_ids : ndarray of uint16 or uint32, shape (source ids,)
        The ids of all source sentences, end to end.
    source_offsets : ndarray of int64, shape (pairs + 1,)
        Where each source sentence begins in `source_ids`, and the end of the last.
    target_ids : ndarray of uint16 or uint32, shape (target ids,)
        The ids of all target sentences.
    target_offsets : ndarray of int64, shape (pairs + 1,)
        Where each target sentence begins.
    report : CleaningReport
        How many pairs were kept and dropped.
    unknown_share : dict of str to float
        Share of unknown ids, 0 to 1, of “source” and “target”.

    Notes
    -----
    Made by `encode_corpus` and `EncodedPairs.open`. The arrays are read-only.
    """

    folder: Path
    source_ids: NDArray[np.unsignedinteger[Any]]
    source_offsets: NDArray[np.int64]
    target_ids: NDArray[np.unsignedinteger[Any]]
    target_offsets: NDArray[np.int64]
    report: CleaningReport
    unknown_share: dict[str, float]

    @classmethod
    def open(cls, folder: Path, fingerprint: str) -> "EncodedPairs":
        """
        Map the pairs of a folder into memory.

        Parameters
        ----------
        folder : Path
            A folder that `encode_corpus` wrote.
        fingerprint : str
            `Tokenizer.fingerprint` of the tokenizer that the ids must be of.

        Returns
        -------
        EncodedPairs
            The pairs.

        Raises
        ------
        RunFolderError
            If a file is missing, cut off or damaged, or the ids are of another tokenizer.

        Notes
        -----
        Only sizes are checked, not content: opening must not read the corpus.
        """
        folder = Path(folder)
        meta = _read_meta(folder / _META)
        try:
            if meta["tokenizer"] != fingerprint:
                raise RunFolderError(
                    f"The ids in {folder} must be of the tokenizer in use, but they were made with "
                    f"another one; {_AGAIN}."
                )
            arrays = [_map(folder, side, meta) for side in _SIDES]
            (source_ids, source_offsets), (target_ids, target_offsets) = arrays
            return cls(
                folder,
                source_ids,
                source_offsets,
                target_ids,
                target_offsets,
                CleaningReport.from_json(meta["report"]),
                {side: float(meta[side]["unknown_share"]) for side in _SIDES},
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise RunFolderError(
                f"{folder / _META} must describe encoded text, but it does not "
                f"({type(error).__name__}: {error}); {_AGAIN}."
            ) from error

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

    def source(self, index: int) -> NDArray[np.unsignedinteger[Any]]:
        """
        Get the ids of one source sentence.

        Parameters
        ----------
        index : int
            The pair, from 0.

        Returns
        -------
        ndarray of uint16 or uint32, shape (length,)
            Its ids without special symbols; a read-only view, nothing is copied.

        Raises
        ------
        IndexError
            If there is no such pair.

        Notes
        -----
        Copy what is kept for long: the view holds the whole file open.
        """
        return _slice(self.source_ids, self.source_offsets, index)

    def target(self, index: int) -> NDArray[np.unsignedinteger[Any]]:
        """
        Get the ids of one target sentence.

        Parameters
        ----------
        index : int
            The pair, from 0.

        Returns
        -------
        ndarray of uint16 or uint32, shape (length,)
            Its ids without special symbols; a read-only view, nothing is copied.

        Raises
        ------
        IndexError
            If there is no such pair.

        Notes
        -----
        Copy what is kept for long: the view holds the whole file open.
        """
        return _slice(self.target_ids, self.target_offsets, index)

    def pair(
        self, index: int
    ) -> tuple[NDArray[np.unsignedinteger[Any]], NDArray[np.unsignedinteger[Any]]]:
        """
        Get the ids of both sides of a pair.

        Parameters
        ----------
        index : int
            The pair, from 0.

        Returns
        -------
        tuple of ndarray and ndarray
            What `source` and `target` give.

        Raises
        ------
        IndexError
            If there is no such pair.

        Notes
        -----
        Pairs keep the order of the text, without those that were dropped.
        """
        return self.source(index), self.target(index)


def encode_corpus(
    corpus: Corpus, tokenizer: Tokenizer, pair_filter: PairFilter, folder: Path
) -> EncodedPairs:
    """
    Encode text once, for every epoch to come.

    Parameters
    ----------
    corpus : Corpus
        The text.
    tokenizer : Tokenizer
        What cuts it into subwords.
    pair_filter : PairFilter
        What decides which pairs are kept. A line of nothing but spaces counts as empty.
    folder : Path
        Where the ids go. Its parents are made; encoded text already there is replaced.

    Returns
    -------
    EncodedPairs
        The pairs, opened.

    Raises
    ------
    TextError
        If the text cannot be used, or not one pair is kept.
    StorageError
        If the disk is full or the folder cannot be written.
    RunFolderError
        If `folder` holds something other than encoded text.

    Notes
    -----
    Memory stays constant: text is handled in chunks of a few megabytes. The files are written into
    a hidden folder beside, synced and renamed, so `folder` is whole or not there.
    """
    folder = Path(folder)
    partial = folder.with_name(f".{folder.name}.partial")
    try:
        _refuse_foreign(folder)
        shutil.rmtree(partial, ignore_errors=True)  # left by a run that was killed
        partial.mkdir(parents=True)
        _write_folder(partial, corpus, tokenizer, pair_filter)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
        _sync(folder.parent)
    except OSError as error:
        raise StorageError(
            f"The encoded text could not be written to {folder}: “{error.strerror or error}”; "
            "make room or choose another folder."
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return EncodedPairs.open(folder, tokenizer.fingerprint)


class _Side:
    """Appends the sentences of one side to its two files."""

    def __init__(self, ids: BufferedWriter, offsets: BufferedWriter, vocabulary_size: int) -> None:
        self.dtype = np.dtype(_ID_TYPES[0] if vocabulary_size <= 1 << 16 else _ID_TYPES[1])
        self.total = 0
        self.unknown = 0
        self._ids = ids
        self._offsets = offsets
        self._offsets.write(np.zeros(1, _OFFSET).tobytes())

    def append(self, sentences: Sequence[list[int]]) -> None:
        """Write sentences after those that are there."""
        lengths = np.array([len(sentence) for sentence in sentences], _OFFSET)
        ids = np.fromiter(chain.from_iterable(sentences), self.dtype, int(lengths.sum()))
        self._ids.write(ids.tobytes())
        self._offsets.write((self.total + lengths.cumsum(dtype=_OFFSET)).tobytes())
        self.total += len(ids)
        self.unknown += int((ids == UNKNOWN).sum())

    def describe(self) -> dict[str, Any]:
        """Tell what ``meta.json`` says of this side."""
        share = self.unknown / self.total if self.total else 0.0
        return {"dtype": self.dtype.str, "ids": self.total, "unknown_share": share}


def _write_folder(
    folder: Path, corpus: Corpus, tokenizer: Tokenizer, pair_filter: PairFilter
) -> None:
    """Write every file of encoded text, ``meta.json`` last."""
    report = CleaningReport()
    with ExitStack() as files:
        # In the order of the arguments below: ids and offsets of the source, then of the target.
        streams = [files.enter_context(_new(folder / name)) for name in _FILES]
        source = _Side(streams[0], streams[1], tokenizer.source_size)
        target = _Side(streams[2], streams[3], tokenizer.target_size)
        for sources, targets in _chunks(corpus.pairs()):
            encoded = zip(
                tokenizer.encode_source(sources), tokenizer.encode_target(targets), strict=True
            )
            kept = [pair for pair in encoded if report.count(pair_filter.reason(*map(len, pair)))]
            source.append([pair[0] for pair in kept])
            target.append([pair[1] for pair in kept])
    if not report.kept:
        raise TextError(
            "At least one sentence pair must be left for training, but the filters left none "
            f"({report.summary()}); raise data.max_length or data.max_ratio, or look at the text."
        )
    meta = {
        "format": _FORMAT,
        "pairs": report.kept,
        "tokenizer": tokenizer.fingerprint,
        "filter": asdict(pair_filter),
        "report": report.to_json(),
        "source": source.describe(),
        "target": target.describe(),
    }
    with _new(folder / _META) as file:
        file.write((json.dumps(meta, indent=2) + "\n").encode())
    _sync(folder)


def _chunks(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[list[str], list[str]]]:
    """Group pairs so that memory stays bounded, for lines of a megabyte too; blank is empty."""
    sources: list[str] = []
    targets: list[str] = []
    characters = 0
    for source, target in pairs:
        sources.append("" if source.isspace() else source)
        targets.append("" if target.isspace() else target)
        characters += len(source) + len(target)
        if len(sources) == _CHUNK_PAIRS or characters >= _CHUNK_CHARACTERS:
            yield sources, targets
            sources, targets, characters = [], [], 0
    if sources:
        yield sources, targets


@contextmanager
def _new(path: Path) -> Iterator[BufferedWriter]:
    """Open a new file that is on the disk when the block ends."""
    with path.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refuse_foreign(folder: Path) -> None:
    """Refuse to replace a folder, or a file, that is no encoded text."""
    if not folder.exists() or (folder / _META).is_file():
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise RunFolderError(
            f"{folder} must be free for the encoded text, but it holds something else; choose "
            "another folder or move it away."
        )


def _read_meta(path: Path) -> dict[str, Any]:
    """Read ``meta.json``."""
    try:
        meta = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise RunFolderError(
            f"{path.parent} must hold encoded text, but {path.name} is not there; encode the text "
            "first."
        ) from error
    except OSError as error:
        raise RunFolderError(
            f"{path} must be a file that can be read, but the system says "
            f"“{error.strerror or error}”; correct its permissions."
        ) from error
    except (ValueError, RecursionError) as error:
        raise RunFolderError(
            f"{path} must be JSON, but it cannot be read ({error}); {_AGAIN}."
        ) from error
    if not isinstance(meta, dict) or meta.get("format") != _FORMAT:
        raise RunFolderError(
            f"{path} must describe encoded text of format {_FORMAT}, but it does not; {_AGAIN}."
        )
    return meta


def _map(
    folder: Path, side: str, meta: Mapping[str, Any]
) -> tuple[NDArray[np.unsignedinteger[Any]], NDArray[np.int64]]:
    """Map the ids and the offsets of one side."""
    dtype, count = meta[side]["dtype"], int(meta[side]["ids"])
    if dtype not in _ID_TYPES:
        raise ValueError(f"ids of type {dtype!r}")
    ids = _map_file(folder / f"{side}.ids", np.dtype(dtype), count)
    offsets = _map_file(folder / f"{side}.offsets", _OFFSET, int(meta["pairs"]) + 1)
    if offsets[0] != 0 or offsets[-1] != count:
        raise RunFolderError(
            f"{folder / side}.offsets must lead through {count:,} ids, but it leads from "
            f"{offsets[0]:,} to {offsets[-1]:,}: it is damaged; {_AGAIN}."
        )
    return ids, offsets


def _map_file(path: Path, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """Map one file whose size must be as described."""
    try:
        size = path.stat().st_size
        if size != count * dtype.itemsize:
            raise RunFolderError(
                f"{path} must have {count * dtype.itemsize:,} bytes, but it has {size:,}: it was "
                f"cut off or changed; {_AGAIN}."
            )
        # A plain view: slicing a memmap object costs ten times as much.
        return np.memmap(path, dtype, mode="r", shape=(count,)).view(np.ndarray)
    except OSError as error:
        raise RunFolderError(
            f"{path} must be a file that can be read, but the system says "
            f"“{error.strerror or error}”; {_AGAIN}."
        ) from error


def _slice(
    ids: NDArray[np.unsignedinteger[Any]], offsets: NDArray[np.int64], index: int
) -> NDArray[np.unsignedinteger[Any]]:
    """Cut one sentence out of the ids of a side."""
    if not 0 <= index < len(offsets) - 1:
        raise IndexError(f"pair {index} of {len(offsets) - 1}")
    return ids[offsets[index] : offsets[index + 1]]
