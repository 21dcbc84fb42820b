"""Settings of the trainer, as plain values."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TrainerConfig:
    """
    Settings of the trainer.

    Plain values: the trainer does not import the configuration.
    """

    steps: int
    """Number of steps."""
    d_model: int
    warmup: int
    learning_rate_factor: float
    """Settings of the learning rate schedule."""
    seed: int
    """Seed of dropout; the batch order has its own."""
    schedule_steps: int = 0
    """Schedule steps taken by the pretrained run."""
    minutes: float | None = None
    """Time limit over all sittings."""
    label_smoothing: float = 0.1
    smoothing_target: str = "uniform"
    """Settings of the loss."""
    clip_norm: float | None = None
    """Maximum norm of the mean gradient."""
    checkpoint_steps: int | None = None
    checkpoint_minutes: float | None = None
    """Interval of checkpoints; the last step always writes one."""
    validate_steps: int | None = None
    """Interval of validations; None for none."""
    patience: int | None = None
    """Validations without improvement before the run ends early."""
    best_by: str = "bleu"
    """The metric that decides, one of `heedful.training.validation_metrics.METRICS`."""
