"""Settings of the trainer, as plain values."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heedful.training.schedule import Schedule

if TYPE_CHECKING:
    from heedful.config.schema import RunConfig


@dataclass(frozen=True)
class TrainerConfig:
    """Settings of a `Trainer`, which needs no recipe."""

    steps: int
    """Number of steps."""
    schedule: Schedule
    """The learning rate of every step."""
    seed: int
    """Seed of dropout; the batch order has its own."""
    minutes: float | None = None
    """Time limit of the run, sessions before it was resumed included."""
    label_smoothing: float = 0.1
    smoothing_target: str = "uniform"
    """Settings of the loss."""
    clip_norm: float | None = None
    """Maximum norm of the mean gradient."""
    checkpoint_steps: int | None = None
    checkpoint_minutes: float | None = None
    """Interval of checkpoints; the last step always writes one."""
    validate_steps: int | None = None
    """Interval of validations; None means no validation."""
    patience: int | None = None
    """Number of validations without improvement that end the run early; None for no limit."""
    keep_best: int = 1
    """Number of checkpoints with the best validations to keep."""
    best_by: str = "bleu"
    """The metric that decides which is best, one of `heedful.settings.registries.METRICS`."""

    @classmethod
    def of(cls, config: "RunConfig", schedule_steps: int = 0) -> "TrainerConfig":
        """Read the settings from a recipe; `schedule_steps`: those of the pretrained run."""
        settings = config.train
        return cls(
            steps=settings.steps,
            schedule=Schedule.of(config, schedule_steps),
            seed=settings.seed,
            minutes=settings.minutes,
            label_smoothing=settings.label_smoothing,
            smoothing_target=settings.smoothing_target,
            clip_norm=settings.clip_norm,
            checkpoint_steps=settings.checkpoint_steps,
            checkpoint_minutes=settings.checkpoint_minutes,
            validate_steps=settings.validate_steps,
            patience=settings.patience,
            keep_best=settings.keep_best,
            best_by=settings.best_by,
        )
