"""
A shard: some thousand pairs that are encoded and put on the disk by themselves.

Shards let several processes work on one text and let an interrupted preparation go on. The name
of a shard's file tells exactly what it was made from, so a file that is there needs no making,
whoever made it and when.
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
    """
    Hold text that is encoded together.

    Attributes
    ----------
    lines : list of int
        Where each pair stands in the whole text, from 1.
    sources : list of str
        Source lines.
    targets : list of str
        Their target lines.
    """

    lines: list[int]
    sources: list[str]
    targets: list[str]

    def pack(self) -> bytes:
        """
        Write the shard as bytes.

        Returns
        -------
        bytes
            One line of JSON, without its end.

        Notes
        -----
        What is sent to another process, and what the digest is taken of.
        """
        text = json.dumps([self.lines, self.sources, self.targets], ensure_ascii=False)
        return text.encode("utf-8", "surrogatepass")

    @classmethod
    def unpack(cls, packed: bytes) -> "Shard":
        """
        Read what `pack` wrote.

        Parameters
        ----------
        packed : bytes
            One line of JSON.

        Returns
        -------
        Shard
            The same shard.

        Notes
        -----
        Half a surrogate pair survives the journey, to be refused by the tokenizer by name.
        """
        return cls(*json.loads(packed.decode("utf-8", "surrogatepass")))


def shard_digest(packed: bytes, fingerprint: str, pair_filter: PairFilter) -> str:
    """
    Digest everything that the ids of a shard depend on.

    Parameters
    ----------
    packed : bytes
        The text, as `Shard.pack` wrote it.
    fingerprint : str
        `Tokenizer.fingerprint` of the subwords.
    pair_filter : PairFilter
        What drops pairs by their ids.

    Returns
    -------
    str
        32 hexadecimal digits.

    Notes
    -----
    Changed text, other subwords or another limit give another digest, so nothing stale is ever
    taken for finished.
    """
    made_by = json.dumps([_FORMAT, fingerprint, asdict(pair_filter)])
    return blake2b(made_by.encode() + b"\n" + packed, digest_size=16).hexdigest()


def encode_shard(shard: Shard, tokenizer: Tokenizer, pair_filter: PairFilter, path: Path) -> None:
    """
    Encode a shard and write it.

    Parameters
    ----------
    shard : Shard
        Text.
    tokenizer : Tokenizer
        What cuts it into subwords.
    pair_filter : PairFilter
        What drops pairs by their lengths.
    path : Path
        The file to write.

    Returns
    -------
    None
        Nothing.

    Notes
    -----
    The file is whole or not there. Raises `OSError` if it cannot be written.
    """
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
    told = {_REPORT: json.dumps(report.to_json())}
    tensors = {**part._asdict(), _LINES: np.array(lines, np.int64)}
    write_whole(path, safetensors.numpy.save(tensors, metadata=told))


def read_part(path: Path) -> EncodedPart:
    """
    Read the ids of a shard.

    Parameters
    ----------
    path : Path
        A file that `encode_shard` wrote.

    Returns
    -------
    EncodedPart
        Its ids.

    Raises
    ------
    RunFolderError
        If it cannot be read.

    Notes
    -----
    Nothing but numbers is read, and nothing is executed.
    """
    with _opened(path) as file:
        return EncodedPart(*(file.get_tensor(name) for name in EncodedPart._fields))


def read_numbers(path: Path) -> NDArray[np.int64]:
    """
    Read which pairs of the whole text a shard kept.

    Parameters
    ----------
    path : Path
        A file that `encode_shard` wrote.

    Returns
    -------
    ndarray of int64, shape (pairs,)
        Their line numbers, from 1.

    Raises
    ------
    RunFolderError
        If it cannot be read.

    Notes
    -----
    So the text of the pairs can be found again without judging it twice.
    """
    with _opened(path) as file:
        numbers: NDArray[np.int64] = file.get_tensor(_LINES)
        return numbers


def read_report(path: Path) -> CleaningReport:
    """
    Read what a shard's pairs were kept and dropped for.

    Parameters
    ----------
    path : Path
        A file that `encode_shard` wrote.

    Returns
    -------
    CleaningReport
        On the rules that are applied to ids.

    Raises
    ------
    RunFolderError
        If it cannot be read.

    Notes
    -----
    Only the head of the file is read.
    """
    with _opened(path) as file:
        return CleaningReport.from_json(json.loads(file.metadata()[_REPORT]))


def is_finished(path: Path) -> bool:
    """
    Tell whether a shard has been encoded.

    Parameters
    ----------
    path : Path
        Where its file would be.

    Returns
    -------
    bool
        True if the file is there and whole.

    Notes
    -----
    Only the head of the file and its size are looked at; a damaged one counts as not there.
    """
    try:
        check_header(path)
        with safe_open(path, framework="numpy") as file:
            return set(file.keys()) == {*EncodedPart._fields, _LINES}
    except (SafetensorError, OSError, ValueError):
        return False


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open the file of a shard, and say so if it cannot be read."""
    try:
        check_header(path)
        with safe_open(path, framework="numpy") as file:
            yield file
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise RunFolderError(
            f"{path} must be a part of encoded text, but it cannot be read ({error}); delete "
            f"{path.parent} and run the command again."
        ) from error
