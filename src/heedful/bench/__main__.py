"""The measurement process: reads a request, runs it, prints the result."""

from typing import Any

import torch

from heedful._version import __version__
from heedful.experiments.process import answer_request


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Run the requested measurement."""
    # Import only what the task needs, so that the process has only the memory of the task.
    done: dict[str, Any]
    if request["task"] == "train":
        from heedful.bench.step import measure_step

        done = measure_step(request)
    elif request["task"] == "translate":
        from heedful.bench.search import measure_search

        done = measure_search(request)
    elif request["task"] == "correct":
        from heedful.bench.device_checks import measure_correct

        done = measure_correct(request)
    elif request["task"] == "rates":
        from heedful.bench.device_checks import measure_rates

        done = measure_rates(request)
    else:
        from heedful.bench.preparing import measure_preparing

        done = measure_preparing(request)
    return {**done, "versions": {"heedful": __version__, "torch": torch.__version__}}


if __name__ == "__main__":
    answer_request(answer)
