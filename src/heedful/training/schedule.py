"""
Schedules of the learning rate: equation 3 of the paper (section 5.3), and other schedules.

All of them rise linearly to a peak during the warm-up, which has zero steps in some recipes. After
the warm-up, the schedules other than the paper's compute::

    constant        peak
    inverse_sqrt    peak * (warmup / step)^0.5          equation 3 with a chosen peak
    cosine          half a cosine wave from the peak to the minimum
    step, plateau   peak * decay_factor^decays          decays at fixed steps, or at validations
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from heedful.errors import PluginError
from heedful.settings.registries import SCHEDULES

if TYPE_CHECKING:
    from heedful.config.schema import RunConfig


def paper_rate(step: int, d_model: int, warmup: int, factor: float = 1.0) -> float:
    """Compute equation 3: ``factor * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5)``."""
    # The peak, at ``step == warmup``, is ``factor * (d_model * warmup)^-0.5``. The authors' code
    # counts steps from 0 and adds 1, which gives the same rates.
    return float(factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


@dataclass(frozen=True)
class Schedule:
    """
    The learning rate of every step of training.

    The fields never change, so all ranks and a resumed run compute the same rates. `plateau` and
    schedules of plugins may also depend on decays caused by validations.
    """

    name: str = "paper"
    """paper, constant, inverse_sqrt, cosine, plateau, step, or the name of a plugin's schedule."""
    warmup: int = 4000
    """Number of steps in which the rate rises."""
    d_model: int = 512
    factor: float = 1.0
    """Factor of equation 3."""
    peak: float = 0.0
    """The rate at the end of the warm-up, for all schedules except the paper's."""
    minimum: float = 0.0
    """Minimum rate after the warm-up."""
    steps: int = 0
    """The step at which schedule `cosine` reaches the minimum."""
    decay_factor: float = 0.5
    """Factor by which each decay multiplies the rate, for schedules `plateau` and `step`."""
    decay_start: int = 0
    decay_steps: int = 1
    """Number of steps before the first decay of schedule `step`, and between two decays."""
    patience: int = 0
    """Number of validations without a better result that do not yet lower the rate of `plateau`."""
    earlier_steps: int = 0
    """Number of steps of the pretrained run, if its schedule is continued."""

    @classmethod
    def of(cls, config: "RunConfig", earlier_steps: int = 0) -> "Schedule":
        """
        Make the schedule of a run, or continue the schedule of a pretrained run.

        A continued cosine schedule ends with this run, as if both runs were a single run.
        """
        settings = config.train
        decay_steps = settings.decay_steps or 1
        return cls(
            name=settings.schedule,
            warmup=settings.warmup,
            d_model=config.model.d_model,
            factor=settings.learning_rate_factor,
            peak=settings.learning_rate or 0.0,
            minimum=settings.min_learning_rate,
            steps=earlier_steps + settings.steps,
            decay_factor=settings.decay_factor,
            decay_start=settings.decay_start or decay_steps,
            decay_steps=decay_steps,
            patience=settings.plateau_patience,
            earlier_steps=earlier_steps,
        )

    @cached_property
    def _formula(self) -> Callable[["Schedule", int, int], float]:
        """The function that computes the rate, looked up once."""
        return SCHEDULES[self.name]

    def rate(self, step: int, decays: int = 0) -> float:
        """Compute the rate of a step, counted from 1, after `decays` decays by validations."""
        step += self.earlier_steps
        rate = self._formula(self, step, decays)
        try:
            number = float(rate)
        except (TypeError, ValueError):
            number = math.nan
        if not 0 <= number < math.inf:
            raise PluginError(
                f"the schedule {self.name!r} must give a learning rate that is finite and not "
                f"negative, but gives {rate!r} for step {step:,}."
            )
        return number

    def is_past_warmup(self, step: int) -> bool:
        """
        Return whether the rate has reached its peak by a step, which ends the warm-up.

        Validations do not lower the rate while it still rises, as in fairseq's
        ``reduce_lr_on_plateau``.
        """
        return step + self.earlier_steps >= self.warmup


# The functions in the registry; a plugin registers a function with the same parameters.


def paper(schedule: Schedule, step: int, decays: int) -> float:
    """Compute equation 3."""
    del decays
    return paper_rate(step, schedule.d_model, schedule.warmup, schedule.factor)


def constant(schedule: Schedule, step: int, decays: int) -> float:
    """Compute ``peak * min(1, step / warmup)``."""
    del decays
    return _warmed_up(schedule, step, schedule.peak)


def inverse_sqrt(schedule: Schedule, step: int, decays: int) -> float:
    """Compute ``peak * (warmup / step)^0.5`` after the warm-up."""
    # Equal to `paper_rate` for ``peak = (d_model * warmup)^-0.5``; fairseq's ``inverse_sqrt`` has
    # the same decay.
    if step < schedule.warmup:
        return constant(schedule, step, decays)
    return max(schedule.minimum, schedule.peak * math.sqrt(schedule.warmup / step))


def cosine(schedule: Schedule, step: int, decays: int) -> float:
    """Compute half a cosine wave, from the peak at step `warmup` to the minimum at step `steps`."""
    # Loshchilov and Hutter 2017, equation 5, without restarts. The rate is constant after `steps`.
    warmup, minimum = schedule.warmup, schedule.minimum
    if step < warmup:
        return constant(schedule, step, decays)
    progress = min(1.0, (step - warmup) / max(1, schedule.steps - warmup))
    return minimum + (schedule.peak - minimum) * (1.0 + math.cos(math.pi * progress)) / 2.0


def plateau(schedule: Schedule, step: int, decays: int) -> float:
    """Compute ``peak * decay_factor^decays`` after the warm-up; validations cause the decays."""
    lowered = schedule.peak * schedule.decay_factor**decays
    if step < schedule.warmup:
        return _warmed_up(schedule, step, lowered)
    return max(schedule.minimum, lowered)


def step_decay(schedule: Schedule, step: int, decays: int) -> float:
    """Compute a rate that decays after `decay_start` steps, then every `decay_steps` steps."""
    del decays
    return plateau(
        schedule, step, max(0, -(-(step - schedule.decay_start) // schedule.decay_steps))
    )


def _warmed_up(schedule: Schedule, step: int, peak: float) -> float:
    """Compute the rate of the warm-up, which rises to the peak and stays there."""
    return peak * step / schedule.warmup if step < schedule.warmup else peak


def counts_decays(name: str) -> bool:
    """Return whether a schedule reads the decays that validations cause."""
    return name == "plateau" or name in SCHEDULES.added()
