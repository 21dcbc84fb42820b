"""Training cost of a run: counted from shapes and the log, and estimated as in the paper."""

from typing import Any

from heedful.evaluation.cost import paper_flops
from heedful.kernels.api import remembered_rates
from heedful.runs.folder import read_json
from heedful.runs.run import Run, read_machine_settings
from heedful.training.history import History


def training_cost(run: Run, history: History) -> dict[str, Any]:
    """
    Compute the cost of a training run so far.

    Returns a mapping for JSON. `counted_flops` is the number of operations of the model's matrix
    products, forward and backward. `hours` is the training time, summed over all resumptions. There
    are three more entries if this machine stores a measured rate of matrix products for the run's
    processor. `sustained_tflops` is the rate of all processes together, `paper_flops` is the
    training time multiplied by this rate, and `share_of_rate` is `counted_flops` divided by
    `paper_flops`.

    The paper multiplies time by “an estimate of the sustained single-precision capacity”. Here this
    capacity is the measured rate of matrix products of a typical shape in the run's precision
    (`heedful.kernels.product_rates`). For logs of older versions, which do not record operations,
    `counted_flops` and `share_of_rate` are missing.
    """
    hours, counted = (history.last("seconds") or 0.0) / 3600, history.last("flops")
    cost: dict[str, Any] = {}
    if counted is not None:
        cost["counted_flops"] = _round(counted)
    cost["hours"] = _round(hours)
    sustained = _sustained_tflops(run)
    if sustained is not None and hours:
        estimate = paper_flops(hours, 1, sustained)
        cost["sustained_tflops"] = _round(sustained)
        cost["paper_flops"] = _round(estimate)
        if counted is not None:
            cost["share_of_rate"] = _round(cost["counted_flops"] / estimate)
    return cost


def _sustained_tflops(run: Run) -> float | None:
    """Return the sustained rate of all processes of the run, if it was measured on this machine."""
    machine_settings = read_machine_settings(run.folder)
    machine = read_json(run.folder.config).get("machine")
    processor = machine.get("processor") if isinstance(machine, dict) else None
    if machine_settings.device.startswith("cuda"):
        processor = machine_settings.instructions  # the name of the GPU
    rates = remembered_rates(str(processor), machine_settings.threads, machine_settings.torch)
    return rates[machine_settings.precision] * machine_settings.ranks / 1000 if rates else None


def _round(value: float) -> float:
    """Round to three significant digits; an estimate should not look like an exact figure."""
    return float(f"{value:.3g}")
