"""
The training loop on a GPU.

The loop of `heedful.training.trainer` waits for each step. Here a step starts as soon as it is
prepared, and its loss and norm are read after the next step has started. If a validation, a
checkpoint or a line of the log is due after a step, the results of the step are read at once.
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
from heedful.training.device.ahead import PackedSource, PreparedStep, StepLayout, StepsAhead
from heedful.training.device.optimizations import Optimizations
from heedful.training.device.step import DeviceStep, PendingResults
from heedful.training.objective.likelihood import Likelihood
from heedful.training.state import StepTotals
from heedful.training.trainer import LOG_SECONDS, LOG_STEPS, Trainer, seed_dropout


class _Started(NamedTuple):
    """A started step whose results have not been read yet."""

    prepared: PreparedStep
    results: PendingResults
    requests: StepTotals
    """Counts of the step, and the requests to stop or save when the step was started."""


class DeviceTrainer(Trainer):
    """
    `Trainer` with tensors of fixed shapes; the results of a step are read one step later.

    The model, optimizer and objective must be supported by `heedful.training.device.optimizations`.
    """

    def __init__(
        self, *arguments: Any, optimizations: Optimizations | None = None, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.optimizations = optimizations or Optimizations()
        self._step: DeviceStep | None = None
        self._read_at, self._waited, self._logged_waiting = 0.0, 0.0, (0.0, 0.0)

    def check_memory(self) -> None:
        """Do nothing: a lack of memory shows in the first step, before any update."""

    def _run_epoch(self, batches: Sequence[Rows]) -> str:
        """Take the remaining steps of an epoch; return the reason to stop, or an empty string."""
        reason, started = "", deque[_Started]()
        counters = self.train_state.counters
        rest = [*batches[counters.position :]]
        with self._explain():
            device_step = self._fit_room(batches)
        layout = StepLayout(self._source, device_step.buffers, self.model)
        self._read_at = time.monotonic()
        with self._steps(layout.prepare, rest) as steps:
            for prepared in steps:
                step = counters.step + len(started) + 1
                with self._explain():
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
        """Return the `DeviceStep` for the batches; create a new one if they need a larger room."""
        room = self._source.room(batches)
        if self._step is None or not self._step.buffers.room.holds(room):
            if self._step is not None:
                room = room.joined(self._step.buffers.room)
            self._step = None  # free the memory of the old step first
            assert isinstance(self.model, EncoderDecoder)
            assert isinstance(self.objective, Likelihood)
            self._step = DeviceStep(
                self.model,
                self.optimizer,
                self.objective,
                self.config.clip_norm,
                room,
                self.optimizations,
                self.log.say,
            )
        return self._step

    @contextmanager
    def _steps(
        self, prepare: Callable[[Rows], PreparedStep], batches: list[Rows]
    ) -> Iterator[Iterator[PreparedStep]]:
        """Prepare steps in advance, or prepare each step when it is needed."""
        if not self.optimizations.ahead:
            yield map(prepare, batches)
            return
        ahead = StepsAhead(prepare, batches)
        with closing(ahead):
            yield self._counting(ahead)

    def _counting(self, ahead: StepsAhead) -> Iterator[PreparedStep]:
        """Yield the steps, and add up the seconds of waiting for them."""
        before = self._waited
        for prepared in ahead:
            self._waited = before + ahead.waited
            yield prepared

    def _start(self, device_step: DeviceStep, step: int, prepared: PreparedStep) -> _Started:
        """Start a step."""
        results = device_step.take(
            prepared.slots,
            lambda number: seed_dropout(self.model.device, self.config.seed, step, number),
            int(prepared.counts.target_tokens),
            self._learning_rate(step),
        )
        return _Started(prepared, results, self._with_requests(prepared.counts))

    def _is_due(self, step: int, requests: StepTotals) -> bool:
        """Return whether the weights or results of a step are needed at once."""
        config = self.config
        intervals = (config.validate_steps, config.checkpoint_steps, LOG_STEPS)
        return (
            step >= config.steps
            or any(interval is not None and step % interval == 0 for interval in intervals)
            or bool(requests.stop_signals or requests.time_over or requests.checkpoint_requests)
            or bool(requests.callback_stops)
            or self.callbacks.follows_steps
            or self._is_checkpoint_due()
            or self.clock.seconds - self._logged_at >= LOG_SECONDS
        )

    def _finish(self, started: _Started, is_last: bool) -> str:
        """Read the results of a step; if `is_last`, also log, validate and save if due."""
        results = started.results.read()
        step = self.train_state.counters.step + 1
        if not results.is_finite:
            self._stop_on_non_finite(step, started.prepared.rows, results.loss, results.norm)
        now = time.monotonic()
        seconds, self._read_at = now - self._read_at, now
        totals = started.requests._replace(loss=results.loss, nll=results.nll)
        self.train_state.counters.add(totals)
        if not is_last:
            self._note_step(totals, results.norm, seconds)
            return ""
        reason = self._after_step(totals, results.norm, seconds)
        self._read_at = time.monotonic()
        return reason

    def _warn_of_few_minutes(self, step: int, ended: bool) -> None:
        """Warn of too few minutes, but not in the first steps, which record graphs and are slow."""
        if ended or step - self._began_at >= LOG_STEPS:
            super()._warn_of_few_minutes(step, ended)

    def _more_of_log(self) -> dict[str, float]:
        """Return the share of the time that was spent waiting for batches."""
        before, (now, waited) = self._logged_waiting, (time.monotonic(), self._waited)
        self._logged_waiting = now, waited
        return {"waiting": (waited - before[1]) / max(now - before[0], 1e-9)} if before[0] else {}

    @contextmanager
    def _explain(self) -> Iterator[None]:
        """Convert an out-of-memory error to a `DeviceError` that names the setting to change."""
        try:
            yield
        except (torch.OutOfMemoryError, RuntimeError) as error:
            if not is_lack_of_memory(error):
                raise
            tokens = self.batches.micro_batch_tokens
            raise DeviceError(
                f"a step must fit into the memory of {self.model.device}, but {tokens:,} tokens "
                f"per side do not; lower train.micro_batch_tokens (it is {tokens:,}; the batches "
                "stay the same, but are split into more micro-batches). A lower data.max_length "
                "has little effect unless sentences are almost as long as a micro-batch."
            ) from error
