"""
Shards: groups of up to 10,000 pairs that are encoded and stored together.

Shards let several processes work on one text and let an interrupted preparation continue. The name
of a shard's file contains a digest of its inputs, so an outdated file is never reused.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from heedful.data.cleaning.filter import CleaningReport, PairFilter
from heedful.data.encoded.merge_shards import EncodedPart, flatten
from heedful.data.tensor_shapes import check_header
from heedful.errors import RunFolderError
from heedful.files import write_whole
from heedful.tokenization.tokenizer import Tokenizer

_FORMAT = 1
_REPORT, _LINES = "report", "lines"


@dataclass(frozen=True)
class Shard:  # numpydoc ignore=PR02
    """Some consecutive pairs of text that are encoded together."""

    lines: list[int]
    """Line number of each pair in the whole text, from 1."""
    sources: list[str]
    """Source lines."""
    targets: list[str]
    """Their target lines."""

    def pack(self) -> bytes:
        """Serialize the shard to bytes, which are digested and sent to another process."""
        text = json.dumps([self.lines, self.sources, self.targets], ensure_ascii=False)
        return text.encode("utf-8", "surrogatepass")

    @classmethod
    def unpack(cls, packed: bytes) -> "Shard":
        """Deserialize what `pack` wrote."""
        # Lone surrogates are kept, so that the tokenizer can report them.
        return cls(*json.loads(packed.decode("utf-8", "surrogatepass")))


def shard_digest(packed: bytes, fingerprint: str, pair_filter: PairFilter) -> str:
    """Digest everything that the ids of a shard depend on."""
    # Changed text, subwords or limits give a different digest, so an outdated shard is
    # never reused.
    settings = json.dumps([_FORMAT, fingerprint, asdict(pair_filter)])
    return blake2b(settings.encode() + b"\n" + packed, digest_size=16).hexdigest()


def encode_shard(shard: Shard, tokenizer: Tokenizer, pair_filter: PairFilter, path: Path) -> None:
    """Encode a shard and write it atomically. Raises `OSError` if it cannot be written."""
    report = CleaningReport()
    sources: list[list[int]] = []
    targets: list[list[int]] = []
    lines: list[int] = []
    encoded = zip(
        tokenizer.encode_source(shard.sources), tokenizer.encode_target(shard.targets), strict=True
    )
    for number, (source, target) in enumerate(encoded):
        reason = pair_filter.reason(len(source), len(target))
        if reason is None:
            report.kept += 1
            sources.append(source)
            targets.append(target)
            lines.append(shard.lines[number])
        else:
            line, texts = shard.lines[number], (shard.sources[number], shard.targets[number])
            report.drop(reason, line, *texts)
    part = EncodedPart(
        *flatten(sources, tokenizer.source_size), *flatten(targets, tokenizer.target_size)
    )
    metadata = {_REPORT: json.dumps(report.to_json())}
    tensors = {**part._asdict(), _LINES: np.array(lines, np.int64)}
    write_whole(path, safetensors.numpy.save(tensors, metadata=metadata))


def read_part(path: Path) -> EncodedPart:
    """
    Read the ids of a shard.

    Only numbers are read, and no code is executed.

    Raises `RunFolderError` if the file cannot be read.
    """
    with _open_shard(path) as file:
        return EncodedPart(*(file.get_tensor(name) for name in EncodedPart._fields))


def read_numbers(path: Path) -> NDArray[np.int64]:
    """
    Read the line numbers, from 1, of the pairs that a shard kept.

    With these numbers, the text of the pairs can be found without filtering it again.

    Raises `RunFolderError` if the file cannot be read.
    """
    with _open_shard(path) as file:
        numbers: NDArray[np.int64] = file.get_tensor(_LINES)
        return numbers


def read_report(path: Path) -> CleaningReport:
    """
    Read a shard's counts of kept and dropped pairs.

    Only the header of the file is read.

    Raises `RunFolderError` if the file cannot be read.
    """
    with _open_shard(path) as file:
        return CleaningReport.from_json(json.loads(file.metadata()[_REPORT]))


def is_finished(path: Path) -> bool:
    """Whether a shard has been encoded."""
    # Only the header and the size of the file are checked; a damaged file counts as missing.
    try:
        check_header(path)
        with safe_open(path, framework="numpy") as file:
            return set(file.keys()) == {*EncodedPart._fields, _LINES}
    except (SafetensorError, OSError, ValueError):
        return False


@contextmanager
def _open_shard(path: Path) -> Iterator[Any]:
    """Open the file of a shard, or report that it cannot be read."""
    try:
        check_header(path)
        with safe_open(path, framework="numpy") as file:
            yield file
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise RunFolderError(
            f"{path} must contain encoded text, but it cannot be read ({error}); delete "
            f"{path.parent} and run the command again."
        ) from error
