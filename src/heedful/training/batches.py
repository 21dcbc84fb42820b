"""
The training pairs of each epoch: one corpus or a mixture, with fixed or sampled subwords.

Training gets the batches of an epoch, and the tensors of a batch, only from this module.
"""

from collections.abc import Sequence
from typing import Any

import torch

from heedful.data.batching import (
    PADDING_COST_CPU,
    Batch,
    BatchOrder,
    Collator,
    Lengths,
    MicroBatches,
    Rows,
)
from heedful.data.encoded.dataset import EncodedPairs, JoinedPairs
from heedful.data.encoded.sampled import sampled_epoch
from heedful.data.mixing import Mixture
from heedful.kernels.api import SHORT, use_cpu_kernel
from heedful.runs.machine_settings import MachineSettings
from heedful.runs.run import Run
from heedful.tokenization.tokenizer import Tokenizer
from heedful.training.device.packed import PackedBatch, Room, pack
from heedful.training.distributed import RankGroup

# A length limit that no row reaches, so that rows of any length are computed without padding.
_ANY_LENGTH = 1 << 30


class Sampler:
    """
    A sampler that encodes the pairs of every epoch with sampled subwords or changed text.

    Only one epoch at a time is stored on disk. An epoch depends only on its index and the seed, so
    a resumed run makes the same pairs again, or finds them on disk.
    """

    def __init__(
        self, run: Run, pairs: Sequence[EncodedPairs], ranks: RankGroup, processes: int
    ) -> None:
        self._run, self._pairs, self._ranks = run, tuple(pairs), ranks
        self._processes = processes

    def __call__(self, epoch: int) -> JoinedPairs:
        """Make or reopen the pairs of an epoch."""
        pairs = self._sample(epoch) if self._ranks.is_first else ()
        self._ranks.barrier()
        return JoinedPairs(pairs or self._sample(epoch))

    def _sample(self, epoch: int) -> tuple[EncodedPairs, ...]:
        """Sample or reopen the pairs of every corpus."""
        data, seed = self._run.config.data, self._run.config.train.seed
        folder = self._run.folder.path / "epoch"
        return tuple(
            sampled_epoch(
                pairs.folder,
                self._run.folder.path,
                data.subword_sampling,
                seed + number,
                epoch,
                data.max_length,
                folder / str(number),
                self._processes,
                data.augment,
            )
            for number, pairs in enumerate(self._pairs)
        )


class TrainingPairs:
    """
    The training pairs and their batches.

    `collator`: adds special symbols and padding. `mixture`: chooses the pairs of an epoch; if None,
    an epoch contains each pair once. `sampler`: samples new subwords of the same pairs for every
    epoch; if None, subwords are fixed. `without_padding`: whether `pack` makes the batches instead
    of `collate`.

    Row indices refer to the same pairs in every epoch; only the subwords of a pair, and therefore
    its lengths, change.
    """

    def __init__(
        self,
        pairs: JoinedPairs,
        run: Run,
        machine_settings: MachineSettings,
        collator: Collator,
        mixture: Mixture | None = None,
        sampler: Sampler | None = None,
        without_padding: bool = False,
    ) -> None:
        self.micro_batch_tokens = machine_settings.micro_batch_tokens
        self._pairs, self._run, self._collator = pairs, run, collator
        self._mixture, self._sampler = mixture, sampler
        self._left_out = _ANY_LENGTH if without_padding else _leaves_out(run, machine_settings)
        self._padding_cost = PADDING_COST_CPU if machine_settings.device == "cpu" else 1.0
        if without_padding:
            self._padding_cost = 0.0
        self._order = self._batch_order()

    def epoch(self, number: int) -> Sequence[Rows]:
        """Return the batches of an epoch; later calls of `collate` use this epoch's subwords."""
        if self._sampler is not None:
            self._pairs = self._sampler(number)
        self._order = self._batch_order()
        return self._order.epoch(number)

    def cut(self, rows: Rows, ranks: int) -> list[MicroBatches]:
        """Cut a batch into micro-batches; return one list per rank."""
        return self._order.cut(rows, ranks)

    def largest(self) -> Rows:
        """Return the micro-batch that needs the most memory."""
        return self._order.largest()

    def collate(self, rows: Rows) -> Batch:
        """Collate pairs into tensors."""
        sources, targets = zip(*(self._pairs.pair(int(row)) for row in rows), strict=True)
        return self._collator.batch([s.tolist() for s in sources], [t.tolist() for t in targets])

    def room(self, batches: Sequence[Rows]) -> Room:
        """Compute a `Room` that is large enough for any packed micro-batch of these batches."""
        return Room.of_batches(batches, *self._lengths, self._most_tokens)

    def pack(self, rows: Rows, room: Room) -> PackedBatch:
        """Pack pairs into tensors with the sizes of a `Room`."""
        return pack(*self._pairs.gather(rows), self._collator, room)

    def describe(self, rows: list[int]) -> list[dict[str, Any]]:
        """Show pairs as subwords, for the report of a batch with a non-finite loss."""
        tokenizer: Tokenizer = self._run.tokenizer
        shown = []
        for row in rows:
            source, target = (side.tolist() for side in self._pairs.pair(row))
            shown.append(
                {
                    "pair": row,
                    "source": " ".join(tokenizer.pieces_source(source)),
                    "target": " ".join(tokenizer.pieces_target(target)),
                }
            )
        return shown

    @property
    def _lengths(self) -> tuple[Lengths, Lengths]:
        """Numbers of source and target tokens of each pair, special symbols included."""
        ended = int(self._run.config.model.source_end)
        return self._pairs.source_lengths + ended, self._pairs.target_lengths + 1

    @property
    def _most_tokens(self) -> int:
        """Maximum number of tokens per side of a micro-batch; slightly higher without padding."""
        if self._left_out < _ANY_LENGTH:
            return self.micro_batch_tokens
        return self.micro_batch_tokens + max(int(side.max()) for side in self._lengths)

    def _batch_order(self) -> BatchOrder:
        """Create the object that divides the pairs of an epoch into batches."""
        settings = self._run.config.train
        return BatchOrder(
            *self._lengths,
            settings.batch_tokens,
            self._most_tokens,
            settings.batch_counting,
            settings.seed,
            self._mixture,
            settings.block_tokens,
            self._padding_cost,
            self._left_out,
        )


def _leaves_out(run: Run, machine_settings: MachineSettings) -> int:
    """Return the maximum length of rows that are computed without padding; 0 if all are padded."""
    model, attention = run.config.model, run.config.model.attention
    by_products = (attention.encoder, attention.decoder) == ("attention", "attention")
    by_products &= attention.score in ("scaled", "unscaled") and attention.window is None
    if {model.encoder, model.decoder} != {"transformer"} or not by_products:
        return 0
    dtype = torch.bfloat16 if machine_settings.precision == "bf16" else torch.float32
    number = torch.zeros(1, dtype=dtype)
    is_left_out = machine_settings.kernels.startswith("compiled") and use_cpu_kernel(number, SHORT)
    return SHORT if is_left_out else 0
