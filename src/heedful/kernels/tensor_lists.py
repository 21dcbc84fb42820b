"""
Changes of tensors: of many at once, and how often each was changed.

On a GPU one kernel changes all of them, instead of one for each tensor.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from heedful.kernels.torch_internals import internal

_SCALES = {
    "adamw": "torch.optim.adamw.adamw(grad_scale)",
    "sgd": "torch.optim.sgd.sgd(grad_scale)",
}


def copy_all(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    """Copy each source into its target."""
    copy = internal("torch._foreach_copy_")
    if copy is not None:
        copy(targets, sources)
        return
    for target, source in zip(targets, sources, strict=True):
        target.copy_(source)


def scale_all(tensors: Sequence[Tensor], factor: float) -> None:
    """Multiply each tensor in place."""
    scale = internal("torch._foreach_mul_")
    if scale is not None:
        scale(tensors, factor)
        return
    for tensor in tensors:
        tensor.mul_(factor)


def approach_all(tensors: Sequence[Tensor], targets: Sequence[Tensor], share: float) -> None:
    """Move each tensor by a share of the way to its target, in place."""
    approach = internal("torch._foreach_lerp_")
    if approach is not None:
        approach(tensors, targets, share)
        return
    for tensor, target in zip(tensors, targets, strict=True):
        tensor.lerp_(target, share)


def fused_scaling(optimizer: str, gradients: Sequence[Tensor], scale: float) -> dict[str, Tensor]:
    """
    Return the argument by which a fused step scales the gradients; else scale them now.

    `optimizer`: ``adamw`` or ``sgd``, of `torch.optim`.
    """
    if internal(_SCALES[optimizer]) is None:
        scale_all(gradients, scale)
        return {}
    # the kernels divide by it
    return {"grad_scale": torch.tensor(1.0 / scale, device=gradients[0].device)}


def change_count(tensor: Tensor) -> int | None:
    """Count the changes in place of a tensor; None where torch does not tell."""
    version = internal("torch.Tensor._version")
    return None if version is None else int(version.__get__(tensor))
