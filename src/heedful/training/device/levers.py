"""What makes a training step on a GPU fast, to be switched off one by one in a measurement."""

from dataclasses import dataclass

import torch

from heedful.kernels.api import has_packed_kernel, kernels_choice
from heedful.model.contracts import Seq2Seq
from heedful.model.packed import why_not_packed
from heedful.training.objective.likelihood import Likelihood, Objective
from heedful.training.optimizer import MixedPrecisionOptimizer


@dataclass(frozen=True)
class Levers:
    """The ways in which a step on a GPU differs from one on a processor."""

    unpadded: bool = True
    """Sentences lie one after the other, and every step fills a room of one size."""
    compiled: bool = True
    """Torch's compiler makes one kernel of what stands between two products."""
    graphs: bool = True
    """A step is a graph for the losses and gradients and one for the update."""
    ahead: bool = True
    """A thread prepares the next batch while this one is computed."""


def why_padded(
    model: Seq2Seq, optimizer: MixedPrecisionOptimizer, objective: Objective, ranks: int
) -> str:
    """Say why a training on a GPU computes padding and waits after each step; empty if not."""
    parameter = optimizer.model_parameters[0]
    if kernels_choice() == "plain":
        return "HEEDFUL_KERNELS is plain"
    if not has_packed_kernel(parameter):
        return f"attention without padding needs bf16 on a GPU, not {_named(parameter)}"
    return why_other_step(optimizer, objective, ranks) or why_not_packed(model)


def why_other_step(optimizer: MixedPrecisionOptimizer, objective: Objective, ranks: int) -> str:
    """Say what in a training, apart from its model and device, needs steps of another kind."""
    if type(objective) is not Likelihood:
        return f"the objective is {objective.describe()}"
    if optimizer.optimizer != "adam":
        return f"the update is by {optimizer.optimizer}"
    if ranks > 1:
        return f"{ranks} processes add up their gradients"
    return ""


def describe_steps(padded: str) -> str:
    """Describe the steps of a training on a GPU for its log, by the result of `why_padded`."""
    if padded:
        return f"steps: with padding, read one by one: {padded}"
    return "steps: without padding, compiled, replayed from graphs, laid out ahead"


def _named(parameter: torch.Tensor) -> str:
    """Name the type and device of a tensor."""
    kind = {torch.float32: "fp32", torch.bfloat16: "bf16"}.get(parameter.dtype, "another type")
    return f"{kind} on a {'GPU' if parameter.is_cuda else 'processor'}"
