"""The measurement process: it reads a request, runs the measurement and prints the result."""

from importlib import import_module
from typing import Any

import torch

from heedful._version import __version__
from heedful.experiments.process import answer_request

_MEASURES = {
    "train": ("step", "measure_step"),
    "translate": ("search", "measure_search"),
    "correct": ("device_checks", "measure_correct"),
    "rates": ("device_checks", "measure_rates"),
    "data": ("preparing", "measure_preparing"),
}
"""Module and function of each task."""


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Run the requested measurement."""
    # Import only the modules of the task, so that others do not add to the measured memory.
    module, measure = _MEASURES[request["task"]]
    done = getattr(import_module(f"heedful.bench.{module}"), measure)(request)
    return {**done, "versions": {"heedful": __version__, "torch": torch.__version__}}


if __name__ == "__main__":
    answer_request(answer)
