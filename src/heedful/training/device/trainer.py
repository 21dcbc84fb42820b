"""
The training loop on a GPU.

The loop of `heedful.training.trainer` waits for each step, because a processor could do nothing
else meanwhile. Here a step is started as soon as it is prepared. Its loss and norm are read after
the next step has been started. If a validation, a checkpoint or a line of the log is due after a
step, its results are read at once.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import torch

from heedful.data.batching import Rows
from heedful.errors import DeviceError
from heedful.machine.memory import is_lack_of_memory
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.training.device.ahead import PreparedStep, StepLayout, StepsAhead
from heedful.training.device.levers import Levers
from heedful.training.device.source import PackedSource
from heedful.training.device.step import DeviceStep, PendingResults
from heedful.training.objective.likelihood import Likelihood
from heedful.training.state import StepTotals
from heedful.training.trainer import LOG_SECONDS, LOG_STEPS, Trainer, seed_dropout


class _Started(NamedTuple):
    """A step that was started and whose results were not read."""

    prepared: PreparedStep
    results: PendingResults
    requests: StepTotals
    """Counts, and requests for an end or a checkpoint, from when the step was started."""


class DeviceTrainer(Trainer):
    """
    `Trainer` with steps of fixed shapes; their results are read one step later.

    The model, optimizer and objective must be supported by `heedful.training.device.levers`.
    """

    def __init__(self, *arguments: Any, levers: Levers | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.levers = levers or Levers()
        self._step: DeviceStep | None = None
        self._read_at, self._waited, self._logged_waiting = 0.0, 0.0, (0.0, 0.0)

    def check_memory(self) -> None:
        """Do nothing: the first step needs as much memory as any, and fails before any change."""

    def _run_epoch(self, batches: Sequence[Rows]) -> str:
        """Take the steps of an epoch that are left; return the reason to stop."""
        reason, started = "", deque[_Started]()
        counters = self.train_state.counters
        rest = [*batches[counters.position :]]
        with self._explained():
            device_step = self._fit_room(batches)
        layout = StepLayout(self._source, device_step.buffers, self.model)
        self._read_at = time.monotonic()
        with self._steps(layout.prepare, rest) as steps:
            for prepared in steps:
                step = counters.step + len(started) + 1
                with self._explained():
                    started.append(self._start(device_step, step, prepared))
                is_due = self._is_due(step, started[-1].requests)
                while len(started) > (0 if is_due else 1):
                    reason = self._finish(started.popleft(), is_last=is_due and not started)
                if reason:
                    return reason
            while started:
                reason = self._finish(started.popleft(), is_last=not started)
        return reason

    @property
    def _source(self) -> PackedSource:
        """The training pairs."""
        assert isinstance(self.batches, PackedSource)
        return self.batches

    def _fit_room(self, batches: Sequence[Rows]) -> DeviceStep:
        """Return the step with a room for the batches; a larger room is recorded again."""
        room = self._source.room(batches)
        if self._step is None or not self._step.buffers.room.holds(room):
            if self._step is not None:
                room = room.joined(self._step.buffers.room)
            self._step = None  # its memory first
            assert isinstance(self.model, EncoderDecoder)
            assert isinstance(self.objective, Likelihood)
            self._step = DeviceStep(
                self.model,
                self.optimizer,
                self.objective,
                self.config.clip_norm,
                room,
                self.levers,
                self.log.say,
            )
        return self._step

    @contextmanager
    def _steps(
        self, prepare: Callable[[Rows], PreparedStep], batches: list[Rows]
    ) -> Iterator[Iterator[PreparedStep]]:
        """Prepare steps ahead, or each when it is needed."""
        if not self.levers.ahead:
            yield map(prepare, batches)
            return
        ahead = StepsAhead(prepare, batches)
        with closing(ahead):
            yield self._counting(ahead)

    def _counting(self, ahead: StepsAhead) -> Iterator[PreparedStep]:
        """Add up the seconds that were waited for steps."""
        before = self._waited
        for prepared in ahead:
            self._waited = before + ahead.waited
            yield prepared

    def _start(self, device_step: DeviceStep, step: int, prepared: PreparedStep) -> _Started:
        """Start a step."""
        results = device_step.take(
            prepared.slots,
            lambda number: seed_dropout(self.config.seed, step, number),
            int(prepared.counts.target_tokens),
            self._learning_rate(step),
        )
        return _Started(prepared, results, self._with_requests(prepared.counts))

    def _is_due(self, step: int, requests: StepTotals) -> bool:
        """Tell whether the weights or results of a step are needed at once."""
        config = self.config
        intervals = (config.validate_steps, config.checkpoint_steps, LOG_STEPS)
        return (
            step >= config.steps
            or any(interval is not None and step % interval == 0 for interval in intervals)
            or bool(requests.stop_signals or requests.time_over or requests.checkpoint_requests)
            or self.callbacks.follows_steps
            or self._is_checkpoint_due()
            or self.clock.seconds - self._logged_at >= LOG_SECONDS
        )

    def _finish(self, started: _Started, is_last: bool) -> str:
        """Read the results of a step; if no later step was started, do what is due."""
        found = started.results.read()
        step = self.train_state.counters.step + 1
        if not found.is_finite:
            self._stop_on_non_finite(step, started.prepared.rows, found.loss, found.norm)
        now = time.monotonic()
        seconds, self._read_at = now - self._read_at, now
        totals = started.requests._replace(loss=found.loss, nll=found.nll)
        self.train_state.counters.add(totals)
        if not is_last:
            self._note_step(totals, found.norm, seconds)
            return ""
        reason = self._after_step(totals, found.norm, seconds)
        self._read_at = time.monotonic()
        return reason

    def _warn_of_warmup(self, step: int, ended: bool) -> None:
        """Warn as soon as the pace is known, which is not before the first steps are recorded."""
        if ended or step - self._began_at >= LOG_STEPS:
            super()._warn_of_warmup(step, ended)

    def _more_of_log(self) -> dict[str, float]:
        """Return the share of the time in which the device had to wait for batches."""
        before, (now, waited) = self._logged_waiting, (time.monotonic(), self._waited)
        self._logged_waiting = now, waited
        return {"waiting": (waited - before[1]) / max(now - before[0], 1e-9)} if before[0] else {}

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Build the error for a full memory of the device."""
        try:
            yield
        except (torch.OutOfMemoryError, RuntimeError) as error:
            if not is_lack_of_memory(error):
                raise
            tokens = self.batches.micro_batch_tokens
            raise DeviceError(
                f"a step must fit into the memory of {self.model.device}, but {tokens:,} tokens a "
                f"side do not; lower train.micro_batch_tokens (it is {tokens:,}; batches stay the "
                "same, they are computed in more parts) or data.max_length."
            ) from error
