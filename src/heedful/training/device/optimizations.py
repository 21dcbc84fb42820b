"""Techniques that make a training step on a GPU fast; benchmarks can disable each of them."""

from dataclasses import dataclass

import torch

from heedful.kernels.api import kernels_choice
from heedful.model.contracts import Seq2Seq
from heedful.model.packed import why_not_packed
from heedful.training.objective.likelihood import Likelihood, Objective


@dataclass(frozen=True)
class Optimizations:
    """The techniques of a training step on a GPU, each on or off."""

    unpadded: bool = True
    """Whether sentences are packed without padding, into tensors of the same size in every step."""
    compiled: bool = True
    """Whether torch's compiler fuses the operations between two matrix products into one kernel."""
    graphs: bool = True
    """Whether a step replays CUDA graphs, which compute losses, gradients and the update."""
    ahead: bool = True
    """Whether a thread prepares the next batch while the current batch is computed."""


def why_padded(
    model: Seq2Seq,
    device: torch.device,
    precision: str,
    optimizer: str = "adam",
    objective: Objective | None = None,
    ranks: int = 1,
) -> str:
    """
    Return the reason why training computes padding and waits after each step; empty if none.

    `optimizer`: name of the optimizer. `objective`: the likelihood if None. `ranks`: number of
    processes.
    """
    plain = type(objective) is Likelihood and objective.guide is None
    has_other = objective is not None and not plain
    reasons = (
        (device.type != "cuda", "only a GPU computes whole steps without padding"),
        (kernels_choice() == "plain", "HEEDFUL_KERNELS is plain"),
        (precision != "bf16", f"attention without padding needs bf16, not {precision}"),
        (has_other, f"the objective is {objective.describe() if objective else ''}"),
        (optimizer != "adam", f"the optimizer is {optimizer}"),
        (ranks > 1, f"{ranks} processes add up their gradients"),
    )
    reason = next((text for holds, text in reasons if holds), "")
    return reason or why_not_packed(model)


def describe_steps(padded: str) -> str:
    """Describe the steps of training on a GPU for the log; `padded`: result of `why_padded`."""
    if padded:
        return f"steps: with padding, collated one at a time, because {padded}"
    return "steps: without padding, compiled, replayed from CUDA graphs, prepared ahead"
