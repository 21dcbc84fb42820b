"""
One epoch of training pairs with sampled subwords, or with changed text.

Every epoch has the same pairs in a different segmentation (Kudo 2018; Provilkov et al. 2020), and
`heedful.data.augment` changes some of the pairs. The random numbers depend only on the seed, the
epoch and the shard. A resumed run therefore recreates any epoch bit for bit, with any number of
processes.
"""

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from heedful.data.augment import augmented_sides
from heedful.data.cleaning.filter import CleaningReport
from heedful.data.encoded.dataset import EncodedPairs
from heedful.data.encoded.merge_shards import EncodedPart, flatten, id_type, write_pairs
from heedful.data.encoded.texts import Texts
from heedful.data.encoded.whole_folder import whole_folder
from heedful.errors import HeedfulError, RunFolderError
from heedful.files import read_within
from heedful.plugins import load_plugins
from heedful.settings.registries import AUGMENTATIONS, augmentation_shares
from heedful.tokenization.tokenizer import Tokenizer

SHARD_PAIRS = 20_000
"""Number of pairs that share a sequence of random numbers, which determines their subwords."""

_META = "meta.json"


def sampled_epoch(
    texts: Path,
    tokenizer: Path,
    sampling: float,
    seed: int,
    epoch: int,
    max_length: int,
    out: Path,
    processes: int = 1,
    augment: str = "",
) -> EncodedPairs:
    """
    Encode all pairs for one epoch.

    `augment`: the share of each augmentation, in the format of `data.augment`.

    No pair is dropped here, so every epoch has the same pairs with the same indices. A script that
    uses more than one process needs the guard ``if __name__ == "__main__":``, as always with
    spawned processes.

    Raises `StorageError` if the disk is full or the folder cannot be written. Raises
    `RunFolderError` if the text or the tokenizer is missing or damaged, or `out` holds something
    else. Raises `TokenizerError` if this kind of tokenizer cannot sample.
    """
    job = _Job(
        Path(texts), Path(tokenizer), sampling, seed, epoch, max_length, SHARD_PAIRS, augment
    )
    encoder, out = _Encoder(job), Path(out)
    if _recorded_inputs(out) != encoder.made_from:
        with whole_folder(out, _META) as folder, _encode_shards(job, encoder, processes) as shards:
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
    augment: str


class _Encoder:
    """An encoder of an epoch's shards."""

    def __init__(self, job: _Job) -> None:
        self.job = job
        self.texts = Texts.open(job.texts)
        self.tokenizer = Tokenizer.load(job.tokenizer)
        self.shards = -(-len(self.texts) // job.shard_pairs)

    @property
    def made_from(self) -> dict[str, Any]:
        """Everything that determines the ids."""
        return {
            "tokenizer": self.tokenizer.fingerprint,
            "pairs": len(self.texts),
            "text_bytes": [len(side.values) for side in self.texts.sides],
            "sampling": self.job.sampling,
            "seed": self.job.seed,
            "epoch": self.job.epoch,
            "max_length": self.job.max_length,
            "shard_pairs": self.job.shard_pairs,
            **({"augment": self.job.augment} if self.job.augment else {}),
        }

    def encode(self, shard: int) -> EncodedPart:
        """Encode the pairs of a shard."""
        job, tokenizer = self.job, self.tokenizer
        chance = f"{job.seed} {job.epoch} {shard}"
        first = shard * job.shard_pairs
        plain = self.texts.pairs(first, first + job.shard_pairs)
        lines = augmented_sides(*plain, job.augment, _generator(f"{chance} augment"))
        generator = _generator(chance)
        encoders = tokenizer.encode_source, tokenizer.encode_target
        encoded = [
            encode(side, job.sampling, generator)
            for encode, side in zip(encoders, lines, strict=True)
        ]
        # A side that became too long is encoded without sampling. If the pair was changed, both
        # sides of the unchanged text are encoded without sampling.
        for place in {
            place for rows in encoded for place, row in enumerate(rows) if len(row) > job.max_length
        }:
            changed = any(side[place] != old[place] for side, old in zip(lines, plain, strict=True))
            for rows, encode, old in zip(encoded, encoders, plain, strict=True):
                if changed or len(rows[place]) > job.max_length:
                    rows[place] = encode([old[place]])[0]
        sizes = tokenizer.source_size, tokenizer.target_size
        return EncodedPart(*flatten(encoded[0], sizes[0]), *flatten(encoded[1], sizes[1]))


def _generator(chance: str) -> Random:
    """Create a random generator that gives the same numbers in every process."""
    return Random(int.from_bytes(sha256(chance.encode()).digest()))


@contextmanager
def _encode_shards(job: _Job, encoder: _Encoder, processes: int) -> Iterator[Iterable[EncodedPart]]:
    """Encode the shards in this process, or in processes that end with the `with` block."""
    processes = min(processes, encoder.shards)
    if processes <= 1:
        yield map(encoder.encode, range(encoder.shards))
        return
    spawn = multiprocessing.get_context("spawn")
    named = augmentation_shares(job.augment)
    plugins = [AUGMENTATIONS.plugin_of(name) for name in named]
    paths = [plugin.path for plugin in plugins if plugin is not None]
    pool = ProcessPoolExecutor(processes, spawn, initializer=_begin, initargs=(paths,))
    try:
        yield pool.map(partial(_encode, job), range(encoder.shards))
    except BrokenProcessPool as error:
        raise HeedfulError(
            "Subwords are sampled by separate processes, but one ended early: there may be too "
            "little memory, or your script lacks the guard "
            '`if __name__ == "__main__":`; use fewer processes (train.threads) or add the guard.'
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(plugins: Sequence[Path]) -> None:
    """Initialize a worker process: ignore Ctrl-C, end with the parent, and load plugins."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    load_plugins(plugins)


def _end_with_parent() -> None:
    """Exit when the parent process ends, for whatever reason."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _encode(job: _Job, shard: int) -> EncodedPart:
    """Encode a shard in a worker process."""
    return _encoder(job).encode(shard)


# Text and tokenizer are opened once in each process.
_encoder = lru_cache(1)(_Encoder)


def _recorded_inputs(out: Path) -> Any:
    """Read the inputs of an existing epoch; None if no epoch exists."""
    if not (out / _META).is_file():
        return None
    try:
        meta = json.loads(read_within(out / _META))
    except (OSError, ValueError, RecursionError):
        meta = None
    if not isinstance(meta, dict) or "made_from" not in meta:
        raise RunFolderError(
            f"{out} must be empty or contain the sampled subwords of an epoch, but it has other "
            "or damaged content; move the folder away."
        )
    return meta["made_from"]
