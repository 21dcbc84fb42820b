"""Steps that a thread prepares while the device computes earlier steps."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Full, Queue
from typing import Protocol, runtime_checkable

from heedful.data.batching import MicroBatches, Rows
from heedful.model.contracts import Seq2Seq, training_flops
from heedful.training.device.buffers import Buffers, Slot
from heedful.training.device.packed import PackedBatch, Room
from heedful.training.state import StepTotals
from heedful.training.trainer import BatchSource

# Maximum number of prepared steps that wait for the device, in addition to one in preparation.
_READY = 1
# Seconds after which a waiting thread checks whether the other thread has ended.
_PATIENCE = 0.1


@runtime_checkable
class PackedSource(BatchSource, Protocol):
    """A source of batches that can be packed without padding."""

    def room(self, batches: Sequence[Rows]) -> Room:
        """Return a `Room` that is large enough for any micro-batch of these batches."""

    def pack(self, rows: Rows, room: Room) -> PackedBatch:
        """Pack pairs into tensors with the sizes of a `Room`."""


@dataclass(frozen=True)
class PreparedStep:
    """A step with its micro-batches in the memory of the host."""

    rows: Rows
    """Row indices of the pairs in the batch."""
    slots: list[Slot]
    """The micro-batches."""
    counts: StepTotals
    """Counts of tokens and operations; the sums that the device computes are still zero."""


class StepLayout:
    """The preparation of steps: cutting batches and packing micro-batches."""

    def __init__(self, source: PackedSource, buffers: Buffers, model: Seq2Seq) -> None:
        self._source, self._buffers, self._model = source, buffers, model

    def prepare(self, rows: Rows) -> PreparedStep:
        """Prepare the step of a batch."""
        micro_batches: MicroBatches = self._source.cut(rows, 1)[0]
        slots, counts = [], StepTotals()
        for part in micro_batches:
            batch = self._source.pack(part, self._buffers.room)
            slots.append(self._buffers.stage(batch))
            lengths = batch.source_lengths, batch.target_lengths
            flops = float(training_flops(self._model, *lengths))
            source, target = (float(side.tokens.sum()) for side in lengths)
            counts = counts.plus(StepTotals(0.0, 0.0, source, target, flops, flops))
        return PreparedStep(rows, slots, counts)


class StepsAhead:
    """
    An iterator over steps; a thread prepares the next step while the caller uses the current step.

    `waited`: seconds that the caller has waited for steps. `close` ends the thread.
    """

    def __init__(self, prepare: Callable[[Rows], PreparedStep], batches: list[Rows]) -> None:
        self.waited = 0.0
        self._prepare, self._batches = prepare, batches
        self._ready: Queue[PreparedStep | BaseException | None] = Queue(_READY)
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="heedful-ahead", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[PreparedStep]:
        """Iterate over the steps; errors of the thread are raised here."""
        while True:
            started = time.monotonic()
            step = self._ready.get()
            self.waited += time.monotonic() - started
            if step is None:
                return
            if isinstance(step, BaseException):
                raise step
            yield step

    def close(self) -> None:
        """End the thread."""
        self._is_closed.set()
        while self._thread.is_alive():
            with suppress(Empty):
                self._ready.get(timeout=_PATIENCE)
        self._thread.join()

    def _work(self) -> None:
        """Prepare all steps; runs in the thread."""
        try:
            for rows in self._batches:
                self._put(self._prepare(rows))
                if self._is_closed.is_set():
                    return
            self._put(None)
        except BaseException as error:  # the caller's thread raises it
            self._put(error)

    def _put(self, step: PreparedStep | BaseException | None) -> None:
        """Pass a step to the caller, unless the caller has closed this object."""
        while not self._is_closed.is_set():
            with suppress(Full):
                self._ready.put(step, timeout=_PATIENCE)
                return
