"""The mean of several checkpoints (section 6.1)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from heedful.checkpoint.rundir import RunFolder
from heedful.checkpoint.store import load_checkpoint, regular_steps, save_checkpoint
from heedful.errors import RunFolderError


def average_checkpoints(folder: RunFolder, last: int) -> list[int]:
    """
    Average the last checkpoints and store the result in the run folder.

    Parameters
    ----------
    folder : RunFolder
        Whose checkpoints.
    last : int
        How many.

    Returns
    -------
    list of int
        The steps that went in.

    Notes
    -----
    Section 6.1 averages the last 5 checkpoints of the base model and the last 20 of the big one,
    written at 10-minute intervals. Fewer are averaged if there are fewer.
    """
    steps = regular_steps(folder)[-last:]
    if not steps:
        raise RunFolderError(
            f"averaging needs a checkpoint, but {folder.path} holds none yet; train first."
        )
    mean = mean_weights(folder, steps)
    save_checkpoint(folder.average, mean, None, {"reason": "average", "steps": steps})
    return steps


def mean_weights(folder: RunFolder, steps: Sequence[int]) -> dict[str, Tensor]:
    """
    Compute the mean of some checkpoints.

    Parameters
    ----------
    folder : RunFolder
        Whose checkpoints.
    steps : sequence of int
        Which ones.

    Returns
    -------
    dict of str to Tensor
        Weights by name, in fp32.

    Notes
    -----
    Added up in fp64, one tensor in memory at a time. Tied weights are one tensor in a checkpoint
    and so are counted once.
    """
    first, *others = (load_checkpoint(folder.checkpoint(step)).model for step in steps)
    mean = {}
    for name, tensor in first.items():
        total = tensor.to(torch.float64)
        for model in others:
            total += model[name]
        mean[name] = (total / len(steps)).float()
    return mean
