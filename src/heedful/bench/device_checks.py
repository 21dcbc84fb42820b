"""
A separate process compares a device's results with the CPU's and measures the device's peak rates.

The CPU in fp32 is the reference for a step and for a search. A device adds numbers in another
order, so its results are close but not equal. In bf16 each number has two to three significant
digits.
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor

from heedful.experiments.timed_training import TimedTraining
from heedful.kernels.api import Graph
from heedful.machine.devices import resolve_device
from heedful.search.settings import SearchOptions
from heedful.translation.translator import Translator

# Maximum distances from the CPU's results, relative to the size of the compared numbers.
BOUNDS = {
    "fp32": {"loss": 1e-5, "gradient": 1e-3, "score": 1e-4},
    "bf16": {"loss": 5e-3, "gradient": 1e-1, "score": 2e-2},
}
_SEARCHES = {"beam 4": SearchOptions(beam=4), "greedy": SearchOptions(beam=1)}
_FEWEST = 5


def measure_correct(request: dict[str, Any]) -> dict[str, Any]:
    """
    Compare a first step, or searches of a run, with the same computation by the CPU in fp32.

    `request`: `device` and `precision`; for a step also the fields of a training request, for
    searches `run`, `lines` and `threads`. Returns `distances`, the `bounds` of some of them, and
    `equal`: whether all distances that have a bound are within it.
    """
    distances = _search_distances(request) if "run" in request else _step_distances(request)
    bounds = BOUNDS[request["precision"]]
    within = [
        distance <= bounds[kind]
        for name, distance in distances.items()
        for kind in bounds
        if name.startswith(kind)
    ]
    return {"distances": distances, "bounds": bounds, "equal": all(within) and bool(within)}


def _step_distances(request: dict[str, Any]) -> dict[str, float]:
    """Compare the loss and gradients of a step with the CPU's."""
    expected_loss, expected = _first_step({**request, "device": "cpu", "precision": "fp32"})
    loss, gradients = _first_step(request)
    difference = torch.stack([(gradients[name] - part).norm() for name, part in expected.items()])
    sizes = torch.stack([part.norm() for part in expected.values()])
    return {
        "loss": abs(loss - expected_loss) / abs(expected_loss),
        "gradient": float(difference.norm() / sizes.norm()),
    }


def _first_step(request: dict[str, Any]) -> tuple[float, dict[str, Tensor]]:
    """Take a step; return the loss and Adam's first moments, which are 0.1 times the gradients."""
    training = TimedTraining(request)
    training.at_once = 1
    training.step()
    moments = training.optimizer.moments()
    first = {name: moment.cpu() for name, moment in moments.items() if name.startswith("first.")}
    return training.log.losses[0], first


def _search_distances(request: dict[str, Any]) -> dict[str, float]:
    """Compare translations and their scores with the CPU's, in beam search and greedy search."""
    lines, run, threads = request["lines"], request["run"], request["threads"]
    translators = [
        Translator.load(run, device=device, precision=precision, threads=threads)
        for device, precision in (("cpu", "fp32"), (request["device"], request["precision"]))
    ]
    distances = {}
    for name, options in _SEARCHES.items():
        expected, results = (translator.translate(lines, options) for translator in translators)
        pairs = [*zip(expected, results, strict=True)]
        away = [abs(theirs.score - ours.score) / abs(ours.score) for ours, theirs in pairs]
        distances[f"score, {name}"] = max(away)
        same = sum(ours.tokens == theirs.tokens for ours, theirs in pairs)
        distances[f"other words, {name}"] = 1 - same / len(pairs)
    return distances


def measure_rates(request: dict[str, Any]) -> dict[str, Any]:
    """
    Measure the peak rates of a device: large matrix products, copies and kernel launches.

    `request`: `device`, `size` (rows and columns of the matrices), `bytes` of a copy, `launches`.
    Returns `product_gflops` by precision, `copy_gb_per_second` of bytes read and written, and
    `launch_seconds` of a kernel that is launched by Python and by a CUDA graph.
    """
    device, size = resolve_device(request["device"]), request["size"]
    drawn = torch.Generator(device).manual_seed(1)
    products = {}
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        # random numbers, because a device multiplies equal numbers faster
        left, right = (
            torch.randn(size, size, generator=drawn, device=device).to(dtype) for _ in range(2)
        )
        products[name] = 2e-9 * size**3 / _seconds(partial(torch.matmul, left, right), device)
    source = torch.empty(request["bytes"], dtype=torch.uint8, device=device).random_()
    target = torch.empty_like(source)
    copy = _seconds(lambda: target.copy_(source), device)
    number, count = torch.zeros(1, device=device), request["launches"]

    def launch() -> None:
        for _ in range(count):
            number.add_(1)

    recorded = Graph(launch, device)
    return {
        "product_gflops": products,
        "copy_gb_per_second": 2e-9 * request["bytes"] / copy,
        "launch_seconds": {
            "by Python": _seconds(launch, device) / count,
            "by a graph": _seconds(recorded.replay, device) / count,
        },
    }


def _seconds(work: Callable[[], object], device: torch.device, enough: float = 0.3) -> float:
    """Return the median time of several synchronized calls, after two calls to warm up."""
    spent: list[float] = []
    while len(spent) < _FEWEST + 2 or sum(spent) < enough:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        started = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        spent.append(time.perf_counter() - started)
    return median(spent[2:])
