"""What a run has cost so far: as counted from shapes and log, and as the paper estimates it."""

from typing import Any

import numpy as np

from heedful.checkpoint.rundir import read_json
from heedful.data.encoded import EncodedPairs
from heedful.errors import RunFolderError
from heedful.evaluation.cost import ForwardFlops, Work, paper_flops
from heedful.machine.rates import remembered_rates
from heedful.model.transformer import Transformer
from heedful.training.history import History
from heedful.workflow.run import Run, read_choices


def training_cost(run: Run, model: Transformer, history: History) -> dict[str, Any]:
    """
    Tell what a training has cost so far.

    Parameters
    ----------
    run : Run
        Which run.
    model : Transformer
        Its model; only shapes are looked at, so it may be on the meta device.
    history : History
        What it logged.

    Returns
    -------
    dict
        Ready for JSON: `counted_flops`, the operations of the model's products forward and
        backward; `hours` over all sittings; and where the product rate of the run's machine is
        known here, `sustained_tflops` of all its processes together, `paper_flops`, which is time
        times that rate, and `share_of_rate`, what was counted by that.

    Notes
    -----
    The paper multiplies time by “an estimate of the sustained single-precision capacity”; here it
    is the rate of products of a typical shape in the precision that the run computes with, as
    `heedful.machine.rates` measured and cached it. `attention` says whether the products between
    positions are counted: they need the lengths of the sentences, which are in the run's `data`.
    """
    hours = (history.last("seconds") or 0.0) / 3600
    lengths = _lengths(run)
    counted = ForwardFlops.of(model).training(training_work(history, lengths))
    cost: dict[str, Any] = {"counted_flops": _rounded(counted)}
    if lengths is None:
        cost["attention"] = "its products between positions are not counted: no data folder"
    cost["hours"] = _rounded(hours)
    sustained = _sustained_tflops(run)
    if sustained is not None and hours:
        estimate = paper_flops(hours, 1, sustained)
        cost["sustained_tflops"] = _rounded(sustained)
        cost["paper_flops"] = _rounded(estimate)
        cost["share_of_rate"] = _rounded(counted / estimate)
    return cost


def training_work(history: History, lengths: tuple[np.ndarray, np.ndarray] | None) -> Work:
    """
    Add up what was trained on, from a log.

    Parameters
    ----------
    history : History
        Its tokens and its share of padding.
    lengths : pair of ndarray of int, shape (pairs,), or None
        Tokens of each source and each target of the training text, special symbols included;
        without them no pairs of positions are counted.

    Returns
    -------
    Work
        All steps so far.

    Notes
    -----
    Tokens are exact. The log has one share of padding for both sides, and the square of a padded
    length is taken to grow by the square of that share, since sentences of a micro-batch are of
    similar length. The tests hold the cost within one per cent of a count over the batches.
    """
    source, target = history.last("source_tokens") or 0.0, history.last("target_tokens") or 0.0
    tokens = np.diff(
        history.training["source_tokens"] + history.training["target_tokens"], prepend=0
    )
    padding = history.training["padding"]
    known = (tokens > 0) & (padding < 1)
    places = tokens[known] / (1 - padding[known])
    padded = float(places.sum() / tokens[known].sum()) if known.any() else 1.0
    pairs = (0.0, 0.0, 0.0)
    if lengths is not None:
        s, t = (side.astype(np.float64) for side in lengths)
        passes = target / t.sum() * padded**2
        pairs = (passes * float(s @ s), passes * float(t @ t), passes * float(t @ s))
    return Work(source * padded, target * padded, target, *pairs)


def _lengths(run: Run) -> tuple[np.ndarray, np.ndarray] | None:
    """Read how long the training sentences are, if the run still has them."""
    try:
        pairs = EncodedPairs.open(run.folder.data, run.tokenizer)
    except RunFolderError:
        return None
    return pairs.source_lengths + int(run.config.model.source_end), pairs.target_lengths + 1


def _sustained_tflops(run: Run) -> float | None:
    """Return what the processes of a run sustain together, as far as it was ever measured here."""
    choices = read_choices(run.folder)
    machine = read_json(run.folder.config).get("machine")
    processor = machine.get("processor") if isinstance(machine, dict) else None
    if choices.device.startswith("cuda"):
        processor = choices.instructions  # the name of the GPU
    rates = remembered_rates(str(processor), choices.threads, choices.torch)
    return rates[choices.precision] * choices.ranks / 1000 if rates else None


def _rounded(value: float) -> float:
    """Keep three digits: an estimate should not look like a measurement."""
    return float(f"{value:.3g}")
