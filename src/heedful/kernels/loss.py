"""The softmax of the loss, in one compiled pass or by functions of torch."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.kernels.native.product import FLOATS, is_plain, native_products


def softmax_kind(device: torch.device) -> str:
    """Name the way of the softmax on a device: compiled, or plain; their last digits differ."""
    return "compiled" if device.type == "cpu" and native_products() is not None else "plain"


def subtracted_softmax(
    scores: Float[Tensor, "rows classes"],
    targets: Int[Tensor, " rows"],
    excess: float,
    out: Float[Tensor, "rows classes"],
) -> tuple[Float[Tensor, " rows"], Float[Tensor, " rows"]]:
    """
    Write the softmax of each row, less `excess` at its target, to `out`.

    `out`: may be `scores`.

    Returns the scores of the targets and the logarithms of the normalisers, in fp32.
    """
    found = _loss_rows(scores, targets, excess, out)
    return plain_subtracted_softmax(scores, targets, excess, out) if found is None else found


def plain_subtracted_softmax(
    scores: Float[Tensor, "rows classes"],
    targets: Int[Tensor, " rows"],
    excess: float,
    out: Float[Tensor, "rows classes"],
) -> tuple[Float[Tensor, " rows"], Float[Tensor, " rows"]]:
    """Do the same by functions of torch, in four passes over the scores."""
    largest = scores.amax(dim=1).float()  # (rows,)
    right = scores.gather(1, targets.unsqueeze(1)).squeeze(1).float()  # (rows,)
    probabilities = torch.softmax(scores, dim=1, out=out)
    # log Z = largest score - log of the largest probability: spares a logsumexp, and the
    # largest probability is never tiny, so its logarithm is safe
    log_z = largest - probabilities.amax(dim=1).float().log()  # (rows,)
    # position of (row, target) in the flattened probabilities: one indexed subtraction
    flat_index = torch.arange(len(out), device=out.device) * out.size(1) + targets  # (rows,)
    out.view(-1)[flat_index] -= excess
    return right, log_z


def _loss_rows(
    scores: Float[Tensor, "rows classes"],
    targets: Int[Tensor, " rows"],
    excess: float,
    out: Float[Tensor, "rows classes"],
) -> tuple[Float[Tensor, " rows"], Float[Tensor, " rows"]] | None:
    """Do the same by compiled functions; None without them for this device, type and shape."""
    if not all(map(is_plain, (scores, targets, out))):
        return None
    if scores.dtype not in FLOATS or out.dtype != scores.dtype:
        return None
    rows, classes = scores.shape
    if out.shape != scores.shape or targets.shape != (rows,):
        return None  # functions of torch say what is wrong
    library = native_products()
    if library is None or not (scores.is_contiguous() and out.is_contiguous()):
        return None
    targets = targets.to(torch.long).contiguous()
    if rows and not 0 <= int(targets.min()) <= int(targets.max()) < classes:
        raise IndexError(f"targets must be from 0 to {classes - 1}")
    is_fp32, threads = scores.dtype == torch.float32, torch.get_num_threads()
    sizes = (0 if is_fp32 else threads * classes, rows, rows)
    memory, right, normalisers = (
        torch.empty(size, dtype=torch.float32, device="cpu") for size in sizes
    )
    library.loss_rows(
        *(scores.data_ptr(), targets.data_ptr(), rows, classes, excess),
        *(int(is_fp32), threads, memory.data_ptr()),
        *(out.data_ptr(), right.data_ptr(), normalisers.data_ptr()),
    )
    return right, normalisers
