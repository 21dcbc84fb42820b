"""Checkpoint averaging (section 6.1)."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import torch
from torch import Tensor

from heedful.arguments import check_counts, checked
from heedful.errors import RunFolderError
from heedful.runs.checkpoint import (
    Signature,
    check_alike,
    load_checkpoint,
    regular_steps,
    save_checkpoint,
)
from heedful.runs.folder import RunFolder
from heedful.runs.hub_names import RECORD, hub_name
from heedful.runs.lock import only_writer
from heedful.runs.run import Run


@checked
def average(run: str | PathLike[str], last: int | None = None) -> Path:
    """
    Average the last checkpoints of a run.

    Parameters
    ----------
    run : str, Path or TrainingResult
        A run folder.
    last : int, optional
        Number of checkpoints; ``train.keep_last`` of the run if None.

    Returns
    -------
    Path
        The folder of the averaged weights, which `Translator.load` takes by default.

    Notes
    -----
    The command `heedful average` does the same (section 6.1). If there are fewer checkpoints, all
    of them are averaged.
    """
    check_counts(last=last)
    if hub_name(run) or (Path(run) / RECORD).is_file():
        raise RunFolderError(
            f"averaging needs a run that you trained, but {run} is a converted model from Hugging "
            "Face's hub, which has only final weights; average a run fine-tuned from it."
        )
    opened = Run.open(run)
    average_checkpoints(opened.folder, last or opened.config.train.keep_last, opened.signature)
    return opened.folder.average


def average_checkpoints(folder: RunFolder, last: int, signature: Signature) -> list[int]:
    """Average the last checkpoints, store the result in the run folder and return the steps."""
    # All checkpoints must belong to the run with this signature, which is also stored with the
    # average. Section 6.1 averages the last 5 checkpoints of the base model and the last 20
    # checkpoints of the big model, written at 10-minute intervals. If there are fewer checkpoints,
    # all of them are averaged.
    steps = regular_steps(folder)[-last:]
    if not steps:
        raise RunFolderError(
            f"averaging needs a checkpoint, but {folder.path} has none yet; train first."
        )
    with only_writer(folder.path, "average"):
        mean = mean_weights(folder, steps, signature)
        state = {"reason": "average", "steps": steps, **signature}
        save_checkpoint(folder.average, mean, None, state)
    return steps


def mean_weights(
    folder: RunFolder, steps: Sequence[int], signature: Signature | None = None
) -> dict[str, Tensor]:
    """Compute the mean of some checkpoints' weights, as fp32 tensors."""
    # Weights are summed in fp64, with one tensor in memory at a time. Tied weights are a single
    # tensor in a checkpoint, so they are averaged once.
    places = [folder.checkpoint(step) for step in steps]
    models = [load_checkpoint(place, signature=signature).model for place in places]
    check_alike(models, places)
    first, *others = models
    mean = {}
    for name, tensor in first.items():
        total = tensor.to(torch.float64)
        for model in others:
            total += model[name]
        mean[name] = (total / len(steps)).float()
    return mean
