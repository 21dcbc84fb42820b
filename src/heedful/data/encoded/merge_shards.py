"""Merging of shards into the flat files that `EncodedPairs` opens."""

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
from heedful.data.encoded.dataset import FILES, FORMAT, ID_TYPES, META, Ids, Lengths
from heedful.data.encoded.flat_file import FlatWriter
from heedful.files import new_file, sync
from heedful.tokenization.tokenizer import UNKNOWN

_REPORT = "report.json"


class EncodedPart(NamedTuple):
    """The ids of some consecutive pairs."""

    source_ids: Ids
    """The ids of their source sentences, concatenated."""
    source_lengths: Lengths
    """Number of ids of each source sentence."""
    target_ids: Ids
    """The ids of their target sentences, concatenated."""
    target_lengths: Lengths
    """Number of ids of each target sentence."""


def id_type(vocabulary_size: int) -> np.dtype[Any]:
    """
    Return the smallest type that holds every id: little-endian, two or four bytes.

    Ids of up to 65,536 subwords fit in two bytes, which halves the bytes read from the disk.
    """
    return np.dtype(ID_TYPES[0] if vocabulary_size <= 1 << 16 else ID_TYPES[1])


def flatten(sentences: Sequence[Sequence[int]], vocabulary_size: int) -> tuple[Ids, Lengths]:
    """Concatenate sentences."""
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
    """Write encoded pairs in the format that `EncodedPairs` opens."""
    with ExitStack() as files:
        # In the order of the arguments below: ids and offsets of the source, then of the target.
        streams = [files.enter_context(new_file(folder / name)) for name in FILES]
        source = _Side(streams[0], streams[1], types[0])
        target = _Side(streams[2], streams[3], types[1])
        for part in parts:
            source.append_ids(part.source_ids, part.source_lengths)
            target.append_ids(part.target_ids, part.target_lengths)
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


class _Side(FlatWriter):
    """A writer of one side's two files, which also digests each file as a whole."""

    def __init__(self, ids: BufferedWriter, offsets: BufferedWriter, dtype: np.dtype[Any]) -> None:
        self._whole = (blake2b(), blake2b())
        super().__init__(ids, offsets)
        self.dtype = dtype
        self.unknown = 0

    def append_ids(self, ids: Ids, lengths: Lengths) -> None:
        """Append sentences."""
        self.append(ids.astype(self.dtype, copy=False).tobytes(), lengths)
        self.unknown += int((ids == UNKNOWN).sum())

    def describe(self) -> dict[str, Any]:
        """Return this side's entry in ``meta.json``."""
        return {
            "dtype": self.dtype.str,
            "ids": self.total,
            "unknown_share": self.unknown / self.total if self.total else 0.0,
            "blocks": dict(zip(("ids", "offsets"), self.blocks(), strict=True)),
        }

    def digest(self) -> bytes:
        """Digest both files."""
        return b"".join(digest.digest() for digest in self._whole)

    def _write(self, *contents: bytes) -> None:
        super()._write(*contents)
        for digest, content in zip(self._whole, contents, strict=True):
            digest.update(content)
