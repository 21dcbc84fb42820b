"""Parts of encoded text, joined to the flat files that `EncodedPairs` opens."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from io import BufferedWriter
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heedful.data.cleaning.filter import CleaningReport
from heedful.data.encoded.block_digests import BlockDigests
from heedful.data.encoded.dataset import FILES, FORMAT, ID_TYPES, META, OFFSET, Ids, Lengths
from heedful.files import new_file, sync
from heedful.tokenization.tokenizer import UNKNOWN

_REPORT = "report.json"


class EncodedPart(NamedTuple):
    """
    Hold the ids of some consecutive pairs.

    Attributes
    ----------
    source_ids : ndarray of uint16 or uint32, shape (source ids,)
        The ids of their source sentences, end to end.
    source_lengths : ndarray of int32, shape (pairs,)
        How many ids each source sentence has.
    target_ids : ndarray of uint16 or uint32, shape (target ids,)
        The ids of their target sentences.
    target_lengths : ndarray of int32, shape (pairs,)
        How many ids each target sentence has.
    """

    source_ids: Ids
    source_lengths: Lengths
    target_ids: Ids
    target_lengths: Lengths


def id_type(vocabulary_size: int) -> np.dtype[Any]:
    """
    Choose the smallest type that holds every id.

    Parameters
    ----------
    vocabulary_size : int
        Subwords of a side.

    Returns
    -------
    dtype
        Little-endian, two or four bytes.

    Notes
    -----
    Up to 65,536 subwords fit in two bytes, which halves what is read from the disk.
    """
    return np.dtype(ID_TYPES[0] if vocabulary_size <= 1 << 16 else ID_TYPES[1])


def flatten(sentences: Sequence[Sequence[int]], vocabulary_size: int) -> tuple[Ids, Lengths]:
    """
    Lay sentences end to end.

    Parameters
    ----------
    sentences : sequence of sequences of int
        Ids.
    vocabulary_size : int
        Decides the type of the ids.

    Returns
    -------
    ids : ndarray of uint16 or uint32, shape (ids,)
        Of all sentences.
    lengths : ndarray of int32, shape (sentences,)
        How many each has.

    Notes
    -----
    One side of an `EncodedPart`.
    """
    lengths = np.array([len(sentence) for sentence in sentences], np.int32)
    total = int(lengths.sum(dtype=np.int64))
    ids = np.fromiter(chain.from_iterable(sentences), id_type(vocabulary_size), total)
    return ids, lengths


def write_pairs(
    folder: Path,
    parts: Iterable[EncodedPart],
    types: tuple[np.dtype[Any], np.dtype[Any]],
    report: CleaningReport,
    made_from: Mapping[str, Any],
) -> None:
    """
    Write encoded pairs in the format that `EncodedPairs` opens.

    Parameters
    ----------
    folder : Path
        An empty folder.
    parts : iterable of EncodedPart
        The pairs in order; held in memory one part at a time.
    types : tuple of dtype
        Of the ids of the source and of the target, as `id_type` chooses them.
    report : CleaningReport
        What was kept and dropped.
    made_from : mapping of str to Any
        What else ``meta.json`` tells; opening needs the key “tokenizer”.

    Returns
    -------
    None
        Nothing.

    Notes
    -----
    How the pairs are cut into parts leaves no trace in the files. ``meta.json`` comes last.
    """
    with ExitStack() as files:
        # In the order of the arguments below: ids and offsets of the source, then of the target.
        streams = [files.enter_context(new_file(folder / name)) for name in FILES]
        source = _Side(streams[0], streams[1], types[0])
        target = _Side(streams[2], streams[3], types[1])
        for part in parts:
            source.append(part.source_ids, part.source_lengths)
            target.append(part.target_ids, part.target_lengths)
    meta = {
        "format": FORMAT,
        "pairs": report.kept,
        **made_from,
        "digest": blake2b(source.digest() + target.digest(), digest_size=16).hexdigest(),
        "report": report.to_json(),
        "source": source.describe(),
        "target": target.describe(),
    }
    for name, content in ((_REPORT, report.readable()), (META, meta)):
        with new_file(folder / name) as file:
            file.write((json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())
    sync(folder)


class _Side:
    """Appends the sentences of one side to its two files."""

    def __init__(self, ids: BufferedWriter, offsets: BufferedWriter, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.total = 0
        self.unknown = 0
        self._files = (ids, offsets)
        self._digests = (blake2b(), blake2b())
        self._blocks = (BlockDigests(), BlockDigests())
        self._write(b"", np.zeros(1, OFFSET).tobytes())

    def append(self, ids: Ids, lengths: Lengths) -> None:
        """Write sentences after those that are there."""
        offsets = self.total + lengths.cumsum(dtype=OFFSET)
        self._write(ids.astype(self.dtype, copy=False).tobytes(), offsets.tobytes())
        self.total += len(ids)
        self.unknown += int((ids == UNKNOWN).sum())

    def describe(self) -> dict[str, Any]:
        """Tell what ``meta.json`` says of this side."""
        share = self.unknown / self.total if self.total else 0.0
        digests = zip(("ids", "offsets"), self._blocks, strict=True)
        return {
            "dtype": self.dtype.str,
            "ids": self.total,
            "unknown_share": share,
            "blocks": {name: part.hexdigests() for name, part in digests},
        }

    def digest(self) -> bytes:
        """Digest both files."""
        return b"".join(digest.digest() for digest in self._digests)

    def _write(self, *contents: bytes) -> None:
        """Append to both files."""
        places = zip(self._files, self._digests, self._blocks, contents, strict=True)
        for file, digest, part, content in places:
            file.write(content)
            digest.update(content)
            part.update(content)
