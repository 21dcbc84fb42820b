"""How long to train and how, as plain values."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TrainerConfig:
    """
    Say how long to train and how.

    Attributes
    ----------
    steps : int
        Where the run ends.
    d_model, warmup, learning_rate_factor : int, int, float
        Of the schedule.
    seed : int
        Of dropout; the order has its own.
    schedule_steps : int, default 0
        Steps of the schedule that an earlier run has gone through.
    minutes : float, optional
        Ends the run earlier, counted over all sittings.
    label_smoothing, smoothing_target : float, str
        Of the loss.
    clip_norm : float, optional
        Largest norm of the mean gradient.
    checkpoint_steps, checkpoint_minutes : int and float, optional
        How often to write a checkpoint; the last step always is one.
    validate_steps : int, optional
        How often to validate; never when absent.
    patience : int, optional
        Validations without a better result before the run ends early.
    best_by : str, default 'bleu'
        What makes a result better, one of `heedful.training.validation_metrics.METRICS`.

    Notes
    -----
    Plain values: the loop does not know the configuration they come from.
    """

    steps: int
    d_model: int
    warmup: int
    learning_rate_factor: float
    seed: int
    schedule_steps: int = 0
    minutes: float | None = None
    label_smoothing: float = 0.1
    smoothing_target: str = "uniform"
    clip_norm: float | None = None
    checkpoint_steps: int | None = None
    checkpoint_minutes: float | None = None
    validate_steps: int | None = None
    patience: int | None = None
    best_by: str = "bleu"
