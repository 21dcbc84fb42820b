"""The real training loop on one batch, for measurements."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful.config.schema import RunConfig
from heedful.data.batching import Batch, Collator, MicroBatches, Rows
from heedful.data.encoded.dataset import FlatIds
from heedful.experiments.work import build
from heedful.machine.devices import resolve_device, resolve_threads, same_bytes
from heedful.model.initialize import initialize
from heedful.training.device.optimizations import Optimizations, why_padded
from heedful.training.device.packed import PackedBatch, Room, pack
from heedful.training.device.trainer import DeviceTrainer
from heedful.training.distributed import RankGroup
from heedful.training.log import RunLog
from heedful.training.objective.likelihood import Likelihood
from heedful.training.optimizer import MixedPrecisionOptimizer
from heedful.training.schedule import Schedule
from heedful.training.state import TrainState
from heedful.training.trainer import Trainer

# On a GPU, steps are timed together, because a step begins before the previous loss is read.
_STEPS_AT_ONCE = 50


def training_request(
    config: RunConfig, vocabulary: int, sources: list[list[int]], targets: list[list[int]]
) -> dict[str, Any]:
    """Describe a training run and its batch for the process that measures it."""
    return {
        "settings": config.to_dict(),
        "vocabulary": vocabulary,
        "sources": sources,
        "targets": targets,
    }


class FixedBatch:
    """
    A batch order that always returns the same batch.

    `micro_batch_tokens`: maximum padded tokens per micro-batch; no maximum if None. `steps`: number
    of steps per epoch.

    Pairs of similar length are grouped, as in a training run with padded batches.
    """

    def __init__(
        self,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        collator: Collator,
        micro_batch_tokens: int | None,
        steps: int = 1,
    ) -> None:
        self._steps = steps
        self._sources, self._targets, self._collator = sources, targets, collator
        self._arrays = [[np.array(row, np.uint32) for row in side] for side in (sources, targets)]
        longest = np.array([max(len(s), len(t)) for s, t in zip(sources, targets, strict=True)]) + 1
        order = np.argsort(longest, kind="stable")
        size = len(order)
        if micro_batch_tokens is not None:
            size = max(1, micro_batch_tokens // int(longest.max()))
        self._parts = [order[first : first + size] for first in range(0, len(order), size)]
        self.micro_batch_tokens = size * int(longest.max())

    def epoch(self, number: int) -> list[Rows]:
        """Return the same batch for every step."""
        del number
        return [np.concatenate(self._parts)] * self._steps

    def cut(self, rows: Rows, ranks: int) -> list[MicroBatches]:
        """Return the prepared micro-batches, whatever the arguments."""
        del rows, ranks
        return [self._parts]

    def largest(self) -> Rows:
        """Return the last micro-batch, which contains the longest pairs."""
        return self._parts[-1]

    def room(self, batches: Sequence[Rows]) -> Room:
        """Compute buffer sizes that suffice for the batches."""
        ended = int(self._collator.source_end)
        source = np.array([len(row) + ended for row in self._sources])
        target = np.array([len(row) + 1 for row in self._targets])
        return Room.of_batches(batches, source, target, self.micro_batch_tokens)

    def pack(self, rows: Rows, room: Room) -> PackedBatch:
        """Pack pairs into buffers of a fixed size; this is part of the timed step."""
        source, target = (
            FlatIds(
                np.concatenate([side[row] for row in rows]),
                np.array([len(side[row]) for row in rows]),
            )
            for side in self._arrays
        )
        return pack(source, target, self._collator, room)

    def collate(self, rows: Rows) -> Batch:
        """Collate pairs into tensors, as in a training run; this is part of the timed step."""
        chosen = rows.tolist()
        return self._collator.batch(
            [self._sources[row] for row in chosen], [self._targets[row] for row in chosen]
        )


class _NoCheckpoints:
    """A checkpointer that saves nothing."""

    def save(self, reason: str) -> Path:
        """Do nothing."""
        return Path()


class TimedTraining:
    """The real training loop on one batch: forward, backward, update, log."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.device = resolve_device(request["device"])
        settings = RunConfig.from_dict(request["settings"])
        resolve_threads(request["threads"])
        model = build(settings, request["vocabulary"])
        initialize(model, settings.train.seed)
        model.to(self.device)
        train = settings.train
        collator = Collator(
            model.padding, model.start_token, model.end_token, settings.model.source_end
        )
        sides = request["sources"], request["targets"]
        self.at_once = _STEPS_AT_ONCE if self.device.type == "cuda" else 1
        batch = FixedBatch(*sides, collator, train.micro_batch_tokens, self.at_once)
        self.log = _Losses()
        optimizer = MixedPrecisionOptimizer(model, request["precision"], train)
        optimizations = Optimizations(**request.get("levers", {}))
        objective = Likelihood(train.label_smoothing, train.smoothing_target)
        self.padded = (
            "off"
            if not optimizations.unpadded
            else why_padded(model, self.device, request["precision"], train.optimizer)
        )
        loop = Trainer if self.padded else partial(DeviceTrainer, optimizations=optimizations)
        self._trainer = loop(
            model,
            optimizer,
            batch,
            batch.collate,
            train.model_copy(update={"minutes": None}),
            Schedule.of(settings),
            TrainState(),
            RankGroup(),
            self.log,
            _NoCheckpoints(),
            objective=objective,
        )

    @property
    def optimizer(self) -> MixedPrecisionOptimizer:
        """The optimizer, with its state after the steps so far."""
        return self._trainer.optimizer

    def step(self) -> None:
        """Take one step, or several steps on a GPU, and wait until they are done."""
        trainer = self._trainer
        steps = trainer.train_state.counters.step + self.at_once
        trainer.config = trainer.config.model_copy(update={"steps": steps})
        with same_bytes(self.device, trainer.config.deterministic):
            trainer.run()
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


class _Losses(RunLog):
    """A log that records losses and writes nothing."""

    def __init__(self) -> None:
        super().__init__(None, 0, 0, quiet=True)
        self.losses: list[float] = []
        self.messages: list[str] = []

    def say(self, text: str) -> None:
        self.messages.append(text)

    def training(self, line: dict[str, Any], share: float, remaining: float) -> None:
        self.losses.append(float(line["loss"]))
