"""
A plan for training on GPUs: memory, and hours computed from a measured rate.

::

    state     fp32 weights, rounded copies in bf16, fp32 gradients, the optimizer's moments
    states    all tensors that the forward pass keeps for the backward pass
    hours     steps x passes x target tokens of a step / rate, on one device
    several   a batch is divided among n devices; after the backward pass each device sends and
              receives 2 (n - 1) / n of the fp32 gradients, as in a ring all-reduce

The forward pass runs on torch's device `meta`, which computes only shapes. For the base model and
the paper's batch, the plan estimates 8.3 GB; a measurement gave 8.8 GB. Each of several devices
computes a smaller part of a batch and is less efficient. Several devices also train with padding,
but the rate is usually that of one device without padding. So the hours of several devices are a
lower bound.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.config.train import TWO_PASSES, TrainConfig
from heedful.errors import SettingError
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.model.weights import parameter_count

# Numbers of sentences and of tokens per sentence in the batch whose states are counted. The number
# of bytes per token is assumed to be constant.
_SENTENCES, _LENGTH = 8, 25
_GRADIENT_BYTES = 4


@dataclass(frozen=True)
class Devices:
    """The devices for which training is planned."""

    rate: float
    """Number of target tokens per second, measured on one device."""
    count: int = 1
    bandwidth: float | None = None
    """GB that each device can send per second, and receive at the same time."""

    def __post_init__(self) -> None:
        if self.count > 1 and self.bandwidth is None:
            raise SettingError(
                "--device-count above 1 needs --device-bandwidth, the GB per second between two "
                "devices."
            )


@dataclass(frozen=True)
class PlannedTraining:
    """The properties of a training run that are needed for a plan."""

    parameters: int
    steps: int
    batch_tokens: int
    """Tokens of a step on the side with more tokens."""
    target_tokens: float
    """Target tokens of a step."""
    micro_batch_tokens: int
    """Maximum number of tokens per side that are processed at once."""
    state_bytes: int
    """Bytes per parameter for weights, gradients and moments."""
    token_bytes: float | None
    """Bytes kept for the backward pass per pair of a source and a target token; None if unknown."""
    mean_passes: float = 1.0
    """Mean number of passes over the batch in a step."""

    @classmethod
    def of(
        cls, model: EncoderDecoder, settings: TrainConfig, target_share: float = 1.0
    ) -> "PlannedTraining":
        """
        Describe the training of a model that is on device `meta`.

        `target_share`: target tokens of a step, divided by the tokens on its longer side.
        """
        is_bf16 = planned_precision(settings) == "bf16"
        moments = 2 if settings.optimizer == "adam" else int(settings.momentum > 0)
        average = settings.ema_decay is not None
        token_bytes = _states_of_a_token(model, is_bf16)
        if token_bytes is not None and settings.objective in TWO_PASSES:
            token_bytes *= 2  # the states of both passes are kept
        return cls(
            parameter_count(model),
            settings.steps,
            settings.batch_tokens,
            settings.batch_tokens * target_share,
            settings.micro_batch_tokens or settings.batch_tokens,
            4 + 2 * is_bf16 + _GRADIENT_BYTES + 4 * moments + 4 * average,
            token_bytes,
            settings.mean_passes,
        )

    @property
    def state(self) -> float:
        """Bytes of weights, gradients and moments."""
        return float(self.parameters * self.state_bytes)

    def states(self, count: int = 1) -> float | None:
        """Compute the bytes that the forward pass keeps on each of `count` devices."""
        if self.token_bytes is None:
            return None
        return self.token_bytes * min(self.micro_batch_tokens, self.batch_tokens / count)

    def step_seconds(self, devices: Devices) -> tuple[float, float]:
        """Return the seconds of a step: for the computation, and for adding up gradients."""
        compute = self.mean_passes * self.target_tokens / devices.rate / devices.count
        if devices.bandwidth is None:
            return compute, 0.0
        sent = 2 * (devices.count - 1) / devices.count * self.parameters * _GRADIENT_BYTES
        return compute, sent / (devices.bandwidth * 1e9)

    def hours(self, devices: Devices) -> float:
        """Compute the hours of all steps."""
        return self.steps * sum(self.step_seconds(devices)) / 3600


def planned_precision(settings: TrainConfig) -> str:
    """Return the precision of training on a planned GPU."""
    return "fp32" if settings.precision == "fp32" else "bf16"


def plan_lines(training: PlannedTraining, devices: Devices) -> list[str]:
    """Format the plan: one line each for memory, one device, and several devices."""
    single = Devices(devices.rate)
    lines = [
        f"memory      {memory_text(training)}, computed",
        f"one device  {_hours(training.hours(single))} (computed) for {training.steps:,} steps of "
        f"{training.target_tokens:,.0f} target tokens at {devices.rate:,.0f} a second",
    ]
    if devices.count > 1:
        compute, exchange = training.step_seconds(devices)
        lines.append(
            f"{devices.count} devices".ljust(12)
            + f"at least {_hours(training.hours(devices))} (computed): "
            f"a step of {1000 * compute:.2f} ms, and {1000 * exchange:.2f} ms to add up gradients "
            f"at {devices.bandwidth:g} GB/s. This is a lower bound, because several GPUs train "
            "with padding, while the given rate is usually that of one GPU without padding."
        )
    return lines


def memory_text(training: PlannedTraining) -> str:
    """Format the memory that a device needs."""
    state = f"{training.state / 1e9:.1f} GB of weights, gradients and moments"
    states = training.states()
    if states is None:
        return f"{state}; the memory for a batch is not known for this model"
    total = (training.state + states) / 1e9
    return f"{total:.1f} GB: {state}, {states / 1e9:.1f} GB of a micro-batch's activations"


def _hours(hours: float) -> str:
    """Format hours, or minutes if the time is shorter than an hour."""
    return f"{hours:,.1f} hours" if hours >= 1 else f"{60 * hours:,.1f} minutes"


def _states_of_a_token(model: EncoderDecoder, is_bf16: bool) -> float | None:
    """Count the bytes kept for a source and a target token; None if `meta` cannot run the model."""
    storages: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        storages[id(storage)] = storage
        return tensor

    ids = torch.ones(_SENTENCES, _LENGTH, dtype=torch.long, device="meta")
    model.train().to(torch.bfloat16 if is_bf16 else torch.float32)
    # the weights are kept alive, so that their ids stay unique
    weights = [weight.untyped_storage() for weight in model.parameters()]
    try:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            model.states(ids, ids)
    except (NotImplementedError, RuntimeError):  # the model reads values, which `meta` lacks
        return None
    for weight in weights:
        storages.pop(id(weight), None)
    return sum(storage.nbytes() for storage in storages.values()) / (_SENTENCES * _LENGTH)
