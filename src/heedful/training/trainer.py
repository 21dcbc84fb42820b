"""
The training loop, for one or several devices, and the interfaces that it uses.

::

    for each step:
        cut the batch into micro-batches, a list for each rank
        forward and backward over this rank's micro-batches   losses are sums over tokens
        add up losses, counts and gradients over all ranks
        refuse the step if loss or gradient is not finite
        divide by the target tokens of the whole batch, clip if requested, step
        if due: log, validate, write a checkpoint

Batches depend on (seed, epoch), dropout on (seed, step, micro-batch). So a resumed run draws the
same numbers. With another number of ranks or other micro-batches, a run has the same batches, but
different dropout.
"""

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from heedful.config.train import TrainConfig
from heedful.data.batching import Batch, MicroBatches, Rows
from heedful.errors import DeviceError, TrainingFailed
from heedful.machine.device_memory import bound_of, peak_of
from heedful.machine.memory import is_lack_of_memory, keep_freed_memory
from heedful.model.contracts import Seq2Seq, count_flops
from heedful.settings.registries import METRICS
from heedful.training.callbacks import Callbacks
from heedful.training.distributed import RankGroup
from heedful.training.health.registry import HealthWarnings
from heedful.training.log import RunLog, perplexity
from heedful.training.objective.likelihood import Likelihood, Objective
from heedful.training.optimizer import MixedPrecisionOptimizer
from heedful.training.progress import Progress
from heedful.training.schedule import Schedule, counts_decays
from heedful.training.state import Clock, LogSums, StepTotals, StopSignal, TrainState, Validation

LOG_STEPS = 50
"""Maximum number of steps between lines of the log."""
LOG_SECONDS = 10.0
"""Number of seconds since the last line of the log after which the next step is logged."""

CALLBACK = "a callback of rank zero"
"""The reason that other ranks report when a callback of rank zero ends the run."""


@runtime_checkable
class BatchSource(Protocol):
    """The interface of the source of batches."""

    @property
    def micro_batch_tokens(self) -> int:
        """Maximum tokens per side of a micro-batch."""

    def epoch(self, number: int) -> Sequence[Rows]:
        """Return the batches of an epoch; called once, before its first batch."""

    def cut(self, rows: Rows, ranks: int) -> list[MicroBatches]:
        """Cut a batch into micro-batches; return one list per rank."""

    def largest(self) -> Rows:
        """Return the micro-batch that needs the most memory."""


@runtime_checkable
class Checkpointer(Protocol):
    """The interface of the writer of checkpoints."""

    def save(self, reason: str) -> Path:
        """Write a checkpoint of the current state and return its folder."""


class Trainer:
    """
    The training loop.

    `describe`: maps indices of pairs to their descriptions in a report; by default, to the indices
    themselves. `objective`: the objective that is minimized; the likelihood if None.

    The loop follows section 5 of the paper. Call `check_memory`, then `run`, which contains the
    loop; the other methods are parts of the loop, in order.
    """

    def __init__(
        self,
        model: Seq2Seq,
        optimizer: MixedPrecisionOptimizer,
        batches: BatchSource,
        collate: Callable[[Rows], Batch],
        config: TrainConfig,
        schedule: Schedule,
        train_state: TrainState,
        ranks: RankGroup,
        log: RunLog,
        checkpoints: Checkpointer,
        validate: Callable[[], Validation] | None = None,
        describe: Callable[[list[int]], list[Any]] = list,
        objective: Objective | None = None,
        callbacks: Callbacks | None = None,
    ) -> None:
        self.model, self.optimizer, self.batches, self.collate = model, optimizer, batches, collate
        self.config, self.schedule, self.train_state = config, schedule, train_state
        self.ranks, self.log = ranks, log
        self.checkpoints, self.validate, self.describe = checkpoints, validate, describe
        self.objective = objective or Likelihood(config.label_smoothing, config.smoothing_target)
        self.callbacks = callbacks or Callbacks()
        self.stop = StopSignal()
        self.clock = Clock(train_state.counters.seconds)
        self._logged_at = self._saved_at = self.clock.seconds
        self._saved_step = self._began_at = train_state.counters.step
        self.progress = Progress(config, self.clock, self._began_at)
        self._warned_of_few_minutes = self._has_penalty = False
        self._health = HealthWarnings(log.say)

    def check_memory(self) -> None:
        """
        Compute the largest micro-batch once, to find a lack of memory before the first step.

        Weights and random state do not change. Raises a `DeviceError` that names the setting to
        change.
        """
        rows = self.batches.largest()
        before = self._copy_averages()
        try:
            with torch.random.fork_rng(self._cuda_devices()), bound_of(self.model.device):
                self._forward_backward(0, [rows], 0)
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            if not is_lack_of_memory(error):
                raise
            raise DeviceError(
                f"the largest micro-batch must fit into the memory of {self.model.device}, but "
                f"{len(rows)} pairs ({self.batches.micro_batch_tokens:,} tokens per side) do not; "
                f"lower train.micro_batch_tokens (it is {self.batches.micro_batch_tokens:,}; the "
                "batches stay the same, but are split into more micro-batches) or "
                "data.max_length."
            ) from error
        finally:
            self._restore_averages(before)
            self.optimizer.zero_grad()
            if self.optimizer.has_working_copy:  # the model's gradients are separate from the sums
                for parameter in self.optimizer.model_parameters:
                    parameter.grad = None

    def run(self) -> str:
        """
        Train until steps, minutes or patience run out, or until a callback or signal stops the run.

        Returns the reason: 'steps', 'minutes', 'patience', a callback's reason (`CALLBACK` if only
        another rank knows it), a signal's name, or 'a signal to another rank'.

        A checkpoint is always written at the last step.
        """
        keep_freed_memory()
        self.model.train()
        counters = self.train_state.counters
        reason = self._end_before_step()
        while not reason:
            batches = self.batches.epoch(counters.epoch)
            reason = self._run_epoch(batches)
            if counters.position >= len(batches):
                counters.epoch, counters.position = counters.epoch + 1, 0
        return reason

    def _run_epoch(self, batches: Sequence[Rows]) -> str:
        """Take the remaining steps of an epoch; return the reason to stop, or an empty string."""
        counters, reason = self.train_state.counters, ""
        while counters.position < len(batches) and not reason:
            rows, step = batches[counters.position], counters.step + 1
            started, before = time.monotonic(), self._copy_averages()
            own = self._forward_backward(step, *self._own_share(rows))
            totals = self._sum_over_ranks(own)
            norm = self._update(step, rows, totals, before)  # check, scale, clip, step
            counters.add(totals)
            reason = self._after_step(totals, norm, time.monotonic() - started)
        return reason

    def _copy_averages(self) -> dict[str, Tensor]:
        """Copy the running averages of batch norm, which a forward pass changes."""
        return {name: part.clone() for name, part in self.optimizer.running_averages.items()}

    def _restore_averages(self, averages: dict[str, Tensor]) -> None:
        """Restore the running averages after a forward pass without a step."""
        for name, part in averages.items():
            self.optimizer.running_averages[name].copy_(part)

    def _own_share(self, rows: Rows) -> tuple[MicroBatches, int]:
        """Cut a batch; return this rank's micro-batches and the index of the first of them."""
        shares = self.batches.cut(rows, self.ranks.world)
        # Indices continue from rank to rank, so no two micro-batches of a step share a seed.
        return shares[self.ranks.rank], sum(map(len, shares[: self.ranks.rank]))

    def _forward_backward(self, step: int, micro_batches: MicroBatches, first: int) -> StepTotals:
        """Run the forward and backward passes of micro-batches in turn; sum losses and counts."""
        totals = StepTotals()
        for index, rows in enumerate(micro_batches, start=first):
            batch = self.collate(rows)
            flops = count_flops(self.model, batch.source_lengths, batch.target_lengths)
            counts = (batch.source_tokens, batch.target_tokens, *flops)
            seed_dropout(self.model.device, self.config.seed, step, index)
            totals = totals.plus(StepTotals(0.0, 0.0, *map(float, counts)))
            batch = batch.to(self.model.device)
            for part in self.objective.parts(self.model, batch, rows, step):
                part.loss.backward()
                self.optimizer.accumulate_gradients()
                totals = totals.plus(part.read_sums())
                self._has_penalty |= part.has_penalty
                del part  # the next part needs the memory
            del batch
        return totals

    def _sum_over_ranks(self, own: StepTotals) -> StepTotals:
        """Add up losses, counts, requests and gradients over all ranks."""
        # Requests are read after the micro-batches, so a signal during the step counts at once.
        own = self._with_requests(own)
        if self.ranks.world == 1:
            return own
        totals = StepTotals.from_tensor(self.ranks.all_reduce(own.as_tensor()))
        self.ranks.all_reduce_gradients(self.optimizer.gradients)
        return totals

    def _with_requests(self, own: StepTotals) -> StepTotals:
        """Add this rank's requests for the end of the run or for a checkpoint."""
        requests = own._replace(
            stop_signals=float(bool(self.stop.reason)),
            time_over=float(self._time_is_over()),
            checkpoint_requests=float(self.stop.checkpoint),
            callback_stops=float(bool(self._callback_reason())),
        )
        self.stop.checkpoint = False
        return requests

    def _update(
        self, step: int, rows: Rows, totals: StepTotals, averages: dict[str, Tensor]
    ) -> float:
        """Check, scale, clip and step; return the norm of the mean gradient before clipping."""
        # Gradients are sums over target tokens; the mean is over the target tokens of all ranks.
        norm = self.optimizer.gradient_norm() / totals.target_tokens
        if not (math.isfinite(totals.loss) and math.isfinite(norm)):
            self._restore_averages(averages)
            self._stop_on_non_finite(step, rows, totals.loss, norm)
        scale = 1.0 / totals.target_tokens
        if self.config.clip_norm is not None and norm > self.config.clip_norm:
            scale *= self.config.clip_norm / norm
        self.optimizer.step(self._learning_rate(step), scale)
        return norm

    def _after_step(self, totals: StepTotals, norm: float, seconds: float) -> str:
        """Log, validate and save if due; return the reason to stop, or an empty string."""
        # 1. sums since the last line of the log
        step = self.train_state.counters.step
        self._note_step(totals, norm, seconds)

        # 2. log, but not if a signal stops the run (see `_log_if_due`)
        last = step >= self.config.steps
        ended = bool(last or (totals.time_over and not totals.stop_signals))
        of_step = {
            "step_source_tokens": int(totals.source_tokens),
            "step_target_tokens": int(totals.target_tokens),
            "gradient_norm": norm,
        }
        self._log_if_due(step, of_step, forced=ended)
        self._warn_of_few_minutes(step, ended=bool(totals.time_over and not last))

        # 3. validate
        is_best, out_of_patience = self._validate_if_due(step, ended)

        # 4. stop; a signal takes precedence over other reasons
        reason = ""
        if totals.stop_signals:
            reason = self.stop.reason or "a signal to another rank"
        elif totals.callback_stops or self._is_stopped_alone():
            reason = self._callback_reason() or CALLBACK
        elif last:
            reason = "steps"
        elif totals.time_over:
            reason = "minutes"
        elif out_of_patience:
            reason = "patience"

        # 5. save after validation, because a checkpoint also stores the best validations
        self._save_if_due(step, bool(reason or totals.checkpoint_requests), is_best)
        if not reason and self._is_stopped_alone():  # `on_checkpoint` may stop the run
            reason = self._callback_reason()
        return reason

    def _note_step(self, totals: StepTotals, norm: float, seconds: float) -> None:
        """Add a step to the sums since the last line of the log, and call the callbacks."""
        counters = self.train_state.counters
        counters.seconds = self.clock.seconds
        if self.callbacks.members:
            loss, rate = totals.loss / totals.target_tokens, self._learning_rate(counters.step)
            figures = {"step": counters.step, "loss": loss, "gradient_norm": norm}
            self.callbacks.step(figures | {"learning_rate": rate})
        self.train_state.since_log = self.train_state.since_log.plus(totals, seconds)

    def _callback_reason(self) -> str:
        """Return the reason why a callback ends the run; empty if none does."""
        return self.callbacks.stop_reason if self.callbacks.members else ""

    def _is_stopped_alone(self) -> bool:
        """Return whether a callback stops the run at once, because there are no other ranks."""
        return self.ranks.world == 1 and bool(self._callback_reason())

    def _learning_rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        return self.schedule.rate(step, self.train_state.decays)

    def _stop_on_non_finite(self, step: int, rows: Rows, loss: float, norm: float) -> NoReturn:
        """Report a batch whose loss or gradient is not finite, and stop the run without a step."""
        self.optimizer.zero_grad()
        if self.ranks.is_first:
            pairs = self.describe(rows.tolist())
            report = {"loss": str(loss), "gradient_norm": str(norm), "pairs": pairs}
            self.log.refusal({"step": step, "refused": report})
            if self.train_state.counters.step > self._saved_step:
                self._save("last")
        is_paper = self.schedule.name == "paper"
        rate = "train.learning_rate_factor" if is_paper else "train.learning_rate"
        raise TrainingFailed(
            f"the loss and its gradient must be finite numbers, but at step {step:,} the loss sum "
            f"is {loss} and the gradient norm {norm}; no step was taken, and the last checkpoint "
            f"contains all earlier steps. The {len(rows)} pairs of the batch are in the last line "
            f"of log.jsonl: look at them, or start a new run with a lower {rate}, a longer "
            "train.warmup, or train.clip_norm=1.0."
        )

    def _time_is_over(self) -> bool:
        """Return whether the planned minutes are over; only rank zero returns True."""
        minutes = self.config.minutes
        return minutes is not None and self.clock.seconds >= minutes * 60 and self.ranks.is_first

    def _end_before_step(self) -> str:
        """Return the reason to end before the first step; empty if the training is not complete."""
        if self.train_state.counters.step >= self.config.steps:
            return "steps"
        if self.ranks.broadcast(float(self._is_out_of_patience())):
            return "patience"
        return "minutes" if self.ranks.broadcast(float(self._time_is_over())) else ""

    def _log_if_due(self, step: int, of_step: dict[str, int | float], forced: bool) -> None:
        """Write a training line every `LOG_STEPS`, every `LOG_SECONDS`, and at the planned end."""
        # A stop by a signal writes no line. The checkpoint stores the sums, so that the log of a
        # resumed run equals the log of an uninterrupted run.
        counters = self.train_state.counters
        waited = self.clock.seconds - self._logged_at
        if not (forced or step % LOG_STEPS == 0 or waited >= LOG_SECONDS):
            return
        self._logged_at = self.clock.seconds
        since = self.train_state.since_log
        nll = since.nll / since.target_tokens
        line = {
            "step": step,
            "loss": since.loss / since.target_tokens,
            "nll": nll,
            "perplexity": perplexity(nll),
            "learning_rate": self._learning_rate(step),
            "source_tokens": counters.source_tokens,
            "target_tokens": counters.target_tokens,
            **of_step,
            **self._flops(),
            "padding": since.padding,
            "target_tokens_per_second": since.target_tokens / max(since.seconds, 1e-9),
            "seconds": round(counters.seconds, 3),
            "memory": peak_of(self.model.device),
        }
        if self._has_penalty:
            line["penalty"] = since.penalty / since.target_tokens
        if self.objective.figure and since.pairs:  # there are no pairs before second passes begin
            line[self.objective.figure] = since.figure / since.pairs
        line |= self.model.log_figures() | self._more_of_log()
        self.log.training(line, self.progress.share(step), self.progress.remaining(step))
        self.callbacks.log(line)
        self.train_state.since_log = LogSums()

    def _more_of_log(self) -> dict[str, float]:
        """Return additional figures for a line of the log; subclasses override this."""
        return {}

    def _warn_of_few_minutes(self, step: int, ended: bool) -> None:
        """Warn, early and at the end, if minutes end before the warm-up or a first pass alone."""
        config, seconds = self.config, self.clock.seconds - self.clock.earlier
        # The speed is known when the first line of the log is due.
        known = seconds >= LOG_SECONDS or step - self._began_at >= LOG_STEPS
        if config.minutes is None or not (ended or (known and not self._warned_of_few_minutes)):
            return
        at_end = step if ended else self.progress.step_at_end_of_minutes(step)
        self._warned_of_few_minutes = True
        when = f"ended at step {step:,}" if ended else f"will end near step {at_end:,.0f}"
        if at_end < config.single_pass_steps < config.steps:
            self.log.say(
                f"the {config.minutes:g} minutes {when}, before second passes begin at step "
                f"{config.single_pass_steps + 1:,} (train.second_pass_start counts steps, not "
                f"minutes): set train.steps to about {max(2, round(at_end)):,}"
            )
        if not self.schedule.is_past_warmup(int(min(at_end, config.steps))):
            self.log.say(
                f"the {config.minutes:g} minutes {when}, inside the warm-up of "
                f"{self.schedule.warmup:,} steps (train.warmup), while the learning rate still "
                "rises: raise train.minutes, or begin a new run with a shorter warm-up, such as "
                f"train.warmup={max(1, round(at_end / 4)):,}"
            )

    def _flops(self) -> dict[str, int]:
        """Return the operations so far for a line of the log; nothing if they are not counted."""
        flops = self.train_state.counters.flops
        return {"flops": flops} if flops else {}

    def _validate_if_due(self, step: int, ended: bool) -> tuple[bool, bool]:
        """Validate if due; return whether the result is one of the best and if patience ran out."""
        every = self.config.validate_steps
        if self.validate is None or every is None or (step % every and not ended):
            return False, False
        is_best = False
        if self.ranks.is_first:
            self.model.eval()
            with self.optimizer.averaged_weights():
                result = {"step": step, "best_by": self.config.best_by, **self.validate()}
            self.model.train()
            self.log.validation(result | self._flops())
            self.callbacks.validation(result | self._flops())
            past_warmup = self.schedule.is_past_warmup(step)
            self._health.warn(result, self.progress.share(step), past_warmup)
            is_regular = step % every == 0  # an uninterrupted run has no extra validation
            keep_best, best_by = self.config.keep_best, self.config.best_by
            is_best = self.train_state.remember(result, keep_best, best_by, is_regular)
            if is_regular:
                self._decay_on_plateau(step)
        self.train_state.decays = int(self.ranks.broadcast(float(self.train_state.decays)))
        return is_best, bool(self.ranks.broadcast(float(self._is_out_of_patience())))

    def _decay_on_plateau(self, step: int) -> None:
        """Count a decay of `plateau` or a plugin's schedule if validations do not improve."""
        schedule, before = self.schedule, self._learning_rate(step)
        if not (counts_decays(schedule.name) and schedule.is_past_warmup(step)):
            return
        if self.train_state.decay_if_due(schedule.patience):
            after, metric = self._learning_rate(step), METRICS[self.config.best_by].label
            if after < before:
                self.log.say(f"{metric} did not improve: the learning rate is now {after:.3g}")

    def _is_out_of_patience(self) -> bool:
        """Return whether patience has run out; only rank zero returns True."""
        patience = self.config.patience
        if self.validate is None or patience is None:
            return False
        return self.ranks.is_first and self.train_state.without_better >= patience

    def _save_if_due(self, step: int, requested: bool, is_best: bool) -> None:
        """Write a checkpoint if due, with its reason."""
        # “regular” takes precedence: averages and `train.keep_last` count only regular checkpoints.
        steps = self.config.checkpoint_steps
        due_by_steps = steps is not None and step % steps == 0
        reason = ""
        if due_by_steps or self._is_checkpoint_due():
            reason = "regular"
        elif requested:
            reason = "last"
        elif is_best:
            reason = "best"
        if reason and self.ranks.is_first:
            self._save(reason)

    def _is_checkpoint_due(self) -> bool:
        """Return whether the minutes between two checkpoints have passed."""
        minutes = self.config.checkpoint_minutes
        return minutes is not None and self.clock.seconds - self._saved_at >= minutes * 60

    def _save(self, reason: str) -> None:
        """Write a checkpoint and record its time."""
        self.train_state.counters.seconds = self.clock.seconds
        folder = self.checkpoints.save(reason)
        self._saved_step = self.train_state.counters.step
        if reason == "regular":  # other checkpoints do not delay the next regular one
            self._saved_at = self.clock.seconds
        self.callbacks.checkpoint(folder)

    def _cuda_devices(self) -> list[torch.device]:
        """List the GPUs whose random state `check_memory` must preserve."""
        return [self.model.device] if self.model.device.type == "cuda" else []


def seed_dropout(device: torch.device, seed: int, step: int, micro_batch: int) -> None:
    """Seed dropout on a device with a hash of (seed, step, micro-batch)."""
    word = np.random.SeedSequence([seed, step, micro_batch]).generate_state(1, np.uint64)[0]
    # torch.manual_seed would also format the call stack, to seed a GPU once it is used
    (torch.default_generator if device.type == "cpu" else torch).manual_seed(int(word))
