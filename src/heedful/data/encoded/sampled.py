"""
One epoch of training pairs with sampled subwords.

Every epoch has the same pairs in another segmentation (Kudo 2018; Provilkov et al. 2020). The
random numbers depend on the seed, the epoch and the shard alone: a resumed run recreates an epoch
bit for bit, on any number of processes, without the epochs before it.
"""

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from heedful.data.cleaning.filter import CleaningReport
from heedful.data.encoded.dataset import EncodedPairs
from heedful.data.encoded.flat_file import whole_folder
from heedful.data.encoded.merge_shards import EncodedPart, flatten, id_type, write_pairs
from heedful.data.encoded.texts import Texts
from heedful.errors import HeedfulError, RunFolderError
from heedful.files import read_within
from heedful.tokenization.tokenizer import Tokenizer

SHARD_PAIRS = 20_000
"""Pairs that share one sequence of random numbers; another number would give other subwords."""

_META = "meta.json"
_FORMAT = 1


def sampled_epoch(
    texts: Path,
    tokenizer: Path,
    sampling: float,
    seed: int,
    epoch: int,
    max_length: int,
    out: Path,
    processes: int = 1,
) -> EncodedPairs:
    """
    Encode all pairs for one epoch.

    No pair is ever dropped here, so batches may be planned from one epoch to the next. A script
    that uses more than one process needs the guard ``if __name__ == "__main__":``, as always with
    spawned processes.

    Raises `StorageError` if the disk is full or the folder cannot be written. Raises
    `RunFolderError` if the text or the tokenizer is missing or damaged, or `out` holds something
    else. Raises `TokenizerError` if this kind of tokenizer has nothing to sample.
    """
    job = _Job(Path(texts), Path(tokenizer), sampling, seed, epoch, max_length, SHARD_PAIRS)
    encoder, out = _Encoder(job), Path(out)
    if _made_from(out) != encoder.made_from:
        with whole_folder(out, _META) as folder, _encoded(job, encoder, processes) as shards:
            made_from = encoder.made_from
            write_pairs(
                folder,
                shards,
                (id_type(encoder.tokenizer.source_size), id_type(encoder.tokenizer.target_size)),
                CleaningReport(kept=made_from["pairs"]),
                {"tokenizer": made_from["tokenizer"], "made_from": made_from},
            )
    return EncodedPairs.open(out, encoder.tokenizer)


class _Job(NamedTuple):
    """The inputs of an epoch, small enough to be sent to another process."""

    texts: Path
    tokenizer: Path
    sampling: float
    seed: int
    epoch: int
    max_length: int
    shard_pairs: int


class _Encoder:
    """An encoder of an epoch's shards."""

    def __init__(self, job: _Job) -> None:
        self.job = job
        self.texts = Texts.open(job.texts)
        self.tokenizer = Tokenizer.load(job.tokenizer)
        self.shards = -(-len(self.texts) // job.shard_pairs)

    @property
    def made_from(self) -> dict[str, Any]:
        """Return everything that determines the ids."""
        return {
            "tokenizer": self.tokenizer.fingerprint,
            "pairs": len(self.texts),
            "text_bytes": [len(self.texts.source_bytes), len(self.texts.target_bytes)],
            "sampling": self.job.sampling,
            "seed": self.job.seed,
            "epoch": self.job.epoch,
            "max_length": self.job.max_length,
            "shard_pairs": self.job.shard_pairs,
        }

    def encode(self, shard: int) -> EncodedPart:
        """Encode the pairs of a shard."""
        job, tokenizer = self.job, self.tokenizer
        chance = sha256(f"{job.seed} {job.epoch} {shard}".encode()).digest()
        generator = Random(int.from_bytes(chance))
        first = shard * job.shard_pairs
        sources, targets = self.texts.pairs(first, first + job.shard_pairs)
        sides = ((tokenizer.encode_source, sources), (tokenizer.encode_target, targets))
        encoded = []
        for encode, lines in sides:
            rows = encode(lines, job.sampling, generator)
            for place, row in enumerate(rows):
                if len(row) > job.max_length:
                    rows[place] = encode([lines[place]])[0]
            encoded.append(rows)
        sizes = tokenizer.source_size, tokenizer.target_size
        return EncodedPart(*flatten(encoded[0], sizes[0]), *flatten(encoded[1], sizes[1]))


@contextmanager
def _encoded(job: _Job, encoder: _Encoder, processes: int) -> Iterator[Iterable[EncodedPart]]:
    """Encode the shards here, or in processes that end with the block."""
    processes = min(processes, encoder.shards)
    if processes <= 1:
        yield map(encoder.encode, range(encoder.shards))
        return
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, spawn, initializer=_begin)
    try:
        yield pool.map(partial(_encode, job), range(encoder.shards))
    except BrokenProcessPool as error:
        raise HeedfulError(
            "Subwords are sampled by separate processes, but one of them ended before its "
            "time: the machine may be short of memory, or a program of your own starts training "
            'without the guard `if __name__ == "__main__":`; use fewer processes or add it.'
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Initialise a worker process: it ignores Ctrl-C and ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait for the parent's end, whatever its cause."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _encode(job: _Job, shard: int) -> EncodedPart:
    """Encode a shard in a worker process."""
    return _encoder(job).encode(shard)


# Text and tokenizer are opened once in each process.
_encoder = lru_cache(1)(_Encoder)


def _made_from(out: Path) -> Any:
    """Read the inputs of an existing epoch; None if there is none."""
    if not (out / _META).is_file():
        return None
    try:
        meta = json.loads(read_within(out / _META))
    except (OSError, ValueError, RecursionError):
        meta = None
    if not isinstance(meta, dict) or "made_from" not in meta:
        raise RunFolderError(
            f"{out} must be free for the sampled subwords of an epoch, but it holds something "
            "else; choose another folder or move it away."
        )
    return meta["made_from"]
