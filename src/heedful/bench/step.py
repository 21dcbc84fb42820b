"""The training step benchmark, in its own process."""

from statistics import median
from typing import Any

from heedful.bench.own_products import products_alone
from heedful.bench.profile import shares
from heedful.experiments.process import time_repeats
from heedful.experiments.timed_training import TimedTraining
from heedful.machine.device_memory import peak_of


def measure_step(request: dict[str, Any]) -> dict[str, Any]:
    """
    Time several training steps.

    Returns `seconds` of each step after the first, `memory`, `loss` per token at the first step,
    and the `messages` of the training loop. `padded` is the reason why batches are padded; it is
    empty if they are not. If the request has `profile`, the `profile` of one more step is added,
    and on a CPU the time of its matrix products (`products alone`).
    """
    training = TimedTraining(request)
    training.step()
    seconds = [total / training.at_once for total in time_repeats(training.step, request["steps"])]
    memory = peak_of(training.device)
    result: dict[str, Any] = {"seconds": seconds, "memory": memory, "loss": training.log.losses[0]}
    result |= {"padded": training.padded, "messages": training.log.messages}
    if request.get("profile"):
        result["profile"] = shares(training.step)
        if training.device.type == "cpu":
            alone = products_alone(training.step)
            if alone is not None:
                result["products alone"] = {"seconds": alone, "of a step": alone / median(seconds)}
    return result
