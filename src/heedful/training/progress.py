"""How far a training has come, and how long it will still take."""

from heedful.config.train import TrainConfig
from heedful.training.state import Clock


class Progress:
    """The progress of a training toward its planned steps or minutes."""

    def __init__(self, config: TrainConfig, clock: Clock, began_at: int) -> None:
        self._steps, self._minutes = config.steps, config.minutes
        self._clock, self._began_at = clock, began_at

    def share(self, step: int) -> float:
        """Return the completed share of the training, by steps or minutes."""
        share = step / self._steps
        if self._minutes is not None:
            share = min(1.0, max(share, self._clock.seconds / (self._minutes * 60)))
        return share

    def remaining(self, step: int) -> float:
        """Return the expected number of seconds to the end, at the speed of this process."""
        seconds = (self._steps - step) / max(self._steps_per_second(step), 1e-9)
        return seconds if self._minutes is None else min(seconds, self._remaining_of_plan())

    def step_at_end_of_minutes(self, step: int) -> float:
        """Return the expected step at the end of the planned minutes."""
        return step + self._steps_per_second(step) * self._remaining_of_plan()

    def _steps_per_second(self, step: int) -> float:
        """Return the speed of this process; a machine may be slower when a run is resumed."""
        seconds = self._clock.seconds - self._clock.earlier
        return (step - self._began_at) / max(seconds, 1e-9)

    def _remaining_of_plan(self) -> float:
        """Return the number of seconds to the end of the planned minutes."""
        assert self._minutes is not None
        return max(self._minutes * 60 - self._clock.seconds, 0.0)
