"""The settings of training: batches, schedule, loss, checkpoints."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from heedful.settings.conditions import ActsIf
from heedful.settings.field_types import Count, CountOrZero, Device, NotNegative, Positive, Share
from heedful.settings.table import SettingsTable
from heedful.tasks.registry import task_metrics

TWO_PASSES = ("simcut", "rdrop")
"""Objectives that compare two passes over each batch."""
_WITH_ADAM = ActsIf("train.optimizer", ("adam",))
_BY_LIKELIHOOD = ActsIf("train.objective", ("likelihood",))
_BY_SIMCUT = ActsIf("train.objective", ("simcut",))
_BY_RDROP = ActsIf("train.objective", ("rdrop",))
_BY_TWO_PASSES = ActsIf("train.objective", TWO_PASSES)
_BY_REFERENCES = ActsIf("train.objective", ("likelihood", *TWO_PASSES))
_BY_REWARD = ActsIf("train.objective", ("reward",))
_BY_RISK = ActsIf("train.objective", ("risk",))
_BY_EITHER = ActsIf("train.objective", ("reward", "risk"))
if TYPE_CHECKING:
    BestBy = str
else:
    BestBy = Literal[("bleu", "chrf", "loss", "exact_match", "cer", *task_metrics())]
Several = Annotated[int, Field(ge=2, le=1000)]


class TrainConfig(SettingsTable):
    """Batches, schedule, loss, checkpoints."""

    table: ClassVar[str] = "train"

    steps: Count = 100_000
    """Updates until training ends."""
    minutes: Positive | None = None
    """Maximum minutes of training, including time before it was resumed. None means no limit."""
    batch_tokens: Count = 25_000
    """Tokens per update, counted on the side with more tokens."""
    batch_counting: Literal["real", "padded"] = "real"
    """Count tokens without padding, or with padding (pairs x longest side) as the authors did."""
    block_tokens: Count | None = None
    """With padded counting: tokens per block of similarly long pairs. None: one block per batch."""
    micro_batch_tokens: Count | None = None
    """Maximum tokens per side of a micro-batch; the batch stays the same. None means automatic."""
    schedule: Literal["paper", "constant", "inverse_sqrt", "cosine", "plateau", "step"] = "paper"
    """Schedule of the learning rate after the warm-up; paper is equation 3 of the paper."""
    warmup: CountOrZero = 4000
    """Updates during which the learning rate rises. 0 means none."""
    learning_rate_factor: Annotated[Positive, ActsIf("train.schedule", ("paper",))] = 1.0
    """Factor by which the paper's learning rate is multiplied."""
    learning_rate: Annotated[Positive | None, ActsIf("train.schedule", unless=("paper",))] = None
    """Peak learning rate, reached at the end of the warm-up; all schedules except paper need it."""
    min_learning_rate: Annotated[
        NotNegative, ActsIf("train.schedule", ("inverse_sqrt", "cosine", "plateau", "step"))
    ] = 0.0
    """Lowest learning rate after the warm-up; the cosine schedule ends at this rate."""
    decay_factor: Annotated[
        float, Field(gt=0, lt=1), ActsIf("train.schedule", ("plateau", "step"))
    ] = 0.5
    """Factor by which each decay multiplies the learning rate."""
    plateau_patience: Annotated[CountOrZero, ActsIf("train.schedule", ("plateau",))] = 1
    """Validations without a better result that are tolerated before the learning rate decays."""
    decay_steps: Annotated[Count | None, ActsIf("train.schedule", ("step",))] = None
    """Updates between two decays; schedule step needs this setting."""
    decay_start: Annotated[Count | None, ActsIf("train.schedule", ("step",))] = None
    """Updates before the first decay, including the warm-up. None means decay_steps."""
    optimizer: Literal["adam", "sgd"] = "adam"
    """Optimizer; adam with a positive weight_decay is AdamW."""
    beta1: Annotated[Share, _WITH_ADAM] = 0.9
    """Adam's decay rate for the mean of the gradients."""
    beta2: Annotated[Share, _WITH_ADAM] = 0.98
    """Adam's decay rate for the mean of the squared gradients."""
    epsilon: Annotated[Positive, _WITH_ADAM] = 1e-9
    """Epsilon in the denominator of Adam's update."""
    momentum: Annotated[Share, ActsIf("train.optimizer", ("sgd",))] = 0.0
    """Momentum of SGD: each update adds this share of the previous update. 0 means none."""
    nesterov: Annotated[bool, ActsIf("train.momentum", unless=(0.0,))] = False
    """Whether the momentum is Nesterov's."""
    objective: Literal["likelihood", "simcut", "rdrop", "reward", "risk"] = "likelihood"
    """Training objective; simcut and rdrop use two passes; reward and risk need --finetune-from."""
    simcut_weight: Annotated[Positive, _BY_SIMCUT] = 3.0
    """Weight of the divergence of the second pass from the first: the alpha of SimCut."""
    simcut_share: Annotated[float, Field(gt=0, lt=1), _BY_SIMCUT] = 0.05
    """Probability that the second pass reads zeros instead of the embedding of a token."""
    rdrop_weight: Annotated[Positive, _BY_RDROP] = 5.0
    """R-Drop's alpha: weight of the mean divergence relative to the sum of both passes' losses."""
    second_pass_start: Annotated[NotNegative, _BY_TWO_PASSES] = 0.0
    """Number of steps with one pass before two passes begin; below 1, a share of all steps."""
    reward_metric: Annotated[Literal["gleu", "bleu", "chrf"], _BY_EITHER] = "gleu"
    """Reward of a translation: GLEU, smoothed BLEU or chrF of the sentence. Risk is 1 - reward."""
    likelihood_weight: Annotated[NotNegative, _BY_EITHER] = 0.017
    """Weight of the references' log-likelihood in the objective. 0 means none."""
    samples: Annotated[Several, _BY_REWARD] = 15
    """Translations sampled per pair; the baseline of each is the mean reward of the others."""
    n_best: Annotated[Several, _BY_RISK] = 10
    """Size of the n-best list from beam search, over which the risk of a pair is computed."""
    risk_sharpness: Annotated[Positive, _BY_RISK] = 1.0
    """Exponent of the n-best list's probabilities before renormalization; Shen et al. use 0.005."""
    risk_reference: Annotated[bool, _BY_RISK] = False
    """Whether the reference is added to the n-best list."""
    label_smoothing: Annotated[Share, _BY_REFERENCES] = 0.1
    """Probability taken from the correct subword and distributed as smoothing_target says."""
    smoothing_target: Annotated[Literal["uniform", "others"], _BY_REFERENCES] = "uniform"
    """Smooth over all subwords (Szegedy et al.) or over all except the correct one."""
    guided_attention: Annotated[NotNegative, _BY_LIKELIHOOD] = 0.0
    """Initial weight of a penalty on attention far from the diagonal. 0 means none."""
    guided_steps: Annotated[Count, ActsIf("train.guided_attention", unless=(0.0,))] = 1000
    """Updates over which the penalty on attention falls to 0."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Random seed."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Precision of the matrix products. Auto means bf16 if it is clearly faster on this machine."""
    device: Device = "auto"
    """Device: auto (a GPU if there is one), cpu, cuda or cuda:N."""
    deterministic: bool = False
    """Whether a GPU computes identical results in every run; a CPU always does."""
    threads: CountOrZero = 0
    """Number of CPU threads. 0 means OMP_NUM_THREADS or, if it is not set, one per core."""
    checkpoint_steps: Count | None = None
    """Updates between checkpoints. None means that only checkpoint_minutes counts."""
    checkpoint_minutes: Positive | None = 10.0
    """Minutes between checkpoints. None means that only checkpoint_steps counts."""
    keep_last: Count = 5
    """Number of newest checkpoints to keep."""
    keep_best: CountOrZero = 1
    """Number of best checkpoints, by validation, that are kept in addition to the newest."""
    validate_steps: Count | None = 1000
    """Updates between validations; one also follows the last update. None means no validation."""
    validation_samples: CountOrZero = 3
    """Number of held-out sentences whose translations each validation prints. 0 means none."""
    best_by: BestBy = "bleu"
    """Metric that chooses the best checkpoint: BLEU, chrF, loss, exact match, CER or F1."""
    patience: Count | None = None
    """Validations without a better result before training stops. None means no early stop."""
    clip_norm: Positive | None = None
    """Clip the gradient to this norm. None means no clipping."""
    weight_decay: NotNegative = 0.0
    """Decoupled weight decay: each update multiplies weights by 1 - learning rate x this value."""
    ema_decay: Share | None = None
    """Decay of the exponential moving average of the weights. None means off."""

    @property
    def single_pass_steps(self) -> int:
        """Number of steps with one pass, which come before the steps with two passes."""
        if self.objective not in TWO_PASSES:
            return self.steps
        start = self.second_pass_start
        return share_of(self.steps, start) if start < 1 else int(start)

    @property
    def mean_passes(self) -> float:
        """Mean number of passes per step over the course of training."""
        return 2.0 - self.single_pass_steps / self.steps

    @model_validator(mode="after")
    def _settings_fit(self) -> "TrainConfig":
        """Refuse settings that contradict each other."""
        if wrong := [*self._clashes()]:
            raise ValueError("; ".join(wrong))
        return self

    def _clashes(self) -> Iterator[str]:
        """Describe settings that contradict each other."""
        if self.patience is not None and self.validate_steps is None:
            yield (
                "`train.patience` counts validations and needs `train.validate_steps`, but "
                "got none; set it, or set `train.patience` to none"
            )
        start = self.second_pass_start
        is_start = start < 1 or (start == round(start) and start < self.steps)
        if self.objective in TWO_PASSES and not is_start:
            yield (
                "`train.second_pass_start` must be a fraction of the steps (below 1) or a whole "
                f"number of steps below `train.steps` ({self.steps}), but got {start:g}"
            )
        if self.schedule in ("paper", "inverse_sqrt") and self.warmup == 0:
            yield (
                f"`train.warmup` must be at least 1 for `train.schedule` = {self.schedule}, but "
                "got 0; set it, or set `train.schedule` to constant"
            )
        if self.schedule != "paper" and self.learning_rate is None:
            yield (
                f"`train.learning_rate` must be set for `train.schedule` = {self.schedule}, but "
                "got none; set it to the peak, such as 0.0005 for Adam or 1.0 for SGD"
            )
        if self.learning_rate is not None and self.min_learning_rate > self.learning_rate:
            yield (
                f"`train.min_learning_rate` must be at most `train.learning_rate` "
                f"({self.learning_rate}), but got {self.min_learning_rate}"
            )
        if self.schedule == "step" and self.decay_steps is None:
            yield (
                "`train.decay_steps` must be set for `train.schedule` = step, but got none; set "
                "it to the number of updates between two decays"
            )
        if self.schedule == "plateau" and self.validate_steps is None:
            yield (
                "`train.schedule` = plateau lowers the learning rate at validations and needs "
                "`train.validate_steps`, but got none; set it, or choose another schedule"
            )


def share_of(steps: int, share: float) -> int:
    """Return a share of the steps, rounded down; 0.29 of 100 steps are 29."""
    return math.floor(steps * share + 1e-9)  # as a binary fraction, 0.29 * 100 is below 29
