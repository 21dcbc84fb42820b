"""Training rates of several systems, measured in turns, up to eight in one process."""

import sys
from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from heedful.config.load import load_config
from heedful.experiments.process import answer_request, run_process, time_in_turns
from heedful.experiments.timed_training import TimedTraining, training_request
from heedful.experiments.work import synthetic_pairs
from heedful.kernels.api import resolve_precision
from heedful.machine.devices import resolve_device, resolve_threads

_AT_ONCE = 8
"""Maximum number of training runs in one process, because they share its memory."""


class TimedSettings(NamedTuple):
    """A training run to measure in turns with other training runs."""

    settings: Sequence[str]
    """All settings that differ from the recipe."""
    source_length: int
    target_length: int
    """Mean number of tokens in a sentence, including the end symbol."""


def conditions(threads: int) -> dict[str, Any]:
    """Describe what rates depend on besides the settings of training runs."""
    device = resolve_device("auto")
    return {
        "precision": resolve_precision("auto", device),
        "device": str(device),
        "threads": resolve_threads(threads),
    }


def rates_in_turns(
    recipe: str, trainings: Sequence[TimedSettings], threads: int, steps: int = 5
) -> list[float]:
    """
    Measure the tokens per second of several training runs, whose steps take turns.

    Tokens are counted on the side that has more of them, like `train.batch_tokens`. Varying load
    on the machine affects all training runs equally.
    """
    shared = conditions(threads)
    requests, tokens = [], []
    for training in trainings:
        config = load_config(recipe, training.settings)
        vocabulary = config.data.vocabulary_size
        lengths = training.source_length, training.target_length
        pairs = synthetic_pairs(vocabulary, *lengths, config.train.batch_tokens)
        requests.append(training_request(config, vocabulary, *pairs) | shared)
        tokens.append(max(sum(len(row) + 1 for row in side) for side in pairs))
    seconds: list[list[float]] = []
    for first in range(0, len(requests), _AT_ONCE):
        request = {"trainings": requests[first : first + _AT_ONCE], "steps": steps}
        seconds += run_process([sys.executable, "-m", __name__], request)["seconds"]
    return [count / median(times) for count, times in zip(tokens, seconds, strict=True)]


def measure_in_turns(request: dict[str, Any]) -> dict[str, Any]:
    """
    Time steps of several training runs in turns, so load on the machine affects them equally.

    Returns `seconds`: for each training run, the seconds of each step after the first.
    """
    trainings = [TimedTraining(training) for training in request["trainings"]]
    rounds = time_in_turns([training.step for training in trainings], request["steps"])
    # a round takes several steps of a training run on a GPU
    seconds = [
        [total / training.at_once for total in totals]
        for training, totals in zip(trainings, zip(*rounds, strict=True), strict=True)
    ]
    return {"seconds": seconds}


if __name__ == "__main__":
    answer_request(measure_in_turns)
