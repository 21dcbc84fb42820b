"""Changes of many tensors at once: on a GPU one kernel instead of one for each tensor."""

from collections.abc import Sequence

from torch import Tensor

from heedful.machine.torch_internals import internal


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
