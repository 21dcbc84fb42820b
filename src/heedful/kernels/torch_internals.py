"""
Undocumented names of torch, and a replacement for each.

Most of these functions save a pass over memory, or a change of layout in every call. A later
version of torch may remove a name, so `internal` looks it up on each use. If the name is missing,
the caller computes the same result with documented functions. No other module uses an internal name
of torch; ``tests/structure/test_torch_internals.py`` checks this. ``HEEDFUL_KERNELS=plain``
disables the internal kernels. The functions at the end of this module change many tensors at once,
with one kernel on a GPU.
"""

import functools
import importlib
import inspect
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from heedful.errors import SettingError

SWITCH = "HEEDFUL_KERNELS"
CHOICES = ("fast", "plain")


@functools.cache
def kernels_choice() -> str:
    """Read ``HEEDFUL_KERNELS`` from the environment once per process; ``fast`` if it is not set."""
    choice = os.environ.get(SWITCH) or CHOICES[0]
    if choice not in CHOICES:
        raise SettingError(
            f"{SWITCH} in the environment must be {' or '.join(CHOICES)}, but is {choice!r}; "
            "unset it for the fastest kernels."
        )
    return choice


def is_plain_torch() -> bool:
    """Return whether all results are computed only with documented functions of torch."""
    return kernels_choice() == "plain"


class Internal(NamedTuple):
    """The use of an internal name, and its replacement."""

    module: str
    """The module of heedful that uses the name, without the prefix ``heedful.``."""
    instead: str
    """The computation if torch lacks the name."""


INTERNALS = {
    "torch.ops.mkldnn._linear_pointwise": Internal(
        "kernels.linear", "torch.nn.functional.linear; weights are not prepacked"
    ),
    "torch.ops.mkldnn._is_mkldnn_bf16_supported": Internal(
        "kernels.linear", "the processor's flags"
    ),
    "torch.ops.mkldnn._reorder_linear_weight": Internal(
        "kernels.linear", "weights are not prepacked"
    ),
    "torch.ops.onednn.qlinear_prepack": Internal(
        "kernels.linear", "fp32 products of the quantized values"
    ),
    "torch.ops.onednn.qlinear_pointwise": Internal(
        "kernels.linear", "fp32 products of the quantized values"
    ),
    "torch._addmm_activation": Internal("kernels.linear", "ReLU after the product"),
    "torch.ops.aten.threshold_backward": Internal("kernels.linear", "torch.Tensor.masked_fill"),
    "torch.ops.aten._softmax_backward_data": Internal(
        "kernels.attention", "the derivative of softmax in fp32"
    ),
    "torch.ops.aten.sigmoid_backward": Internal(
        "kernels.recurrent", "the derivative of the sigmoid"
    ),
    "torch.ops.aten.embedding_dense_backward": Internal(
        "kernels.linear", "torch.Tensor.index_add_"
    ),
    "torch._foreach_copy_": Internal("kernels.torch_internals", "torch.Tensor.copy_, in a loop"),
    "torch._foreach_mul_": Internal("kernels.torch_internals", "torch.Tensor.mul_, in a loop"),
    "torch._foreach_lerp_": Internal("kernels.torch_internals", "torch.Tensor.lerp_, in a loop"),
    "torch.optim.adamw.adamw(grad_scale)": Internal(
        "kernels.torch_internals", "gradients are scaled before the step"
    ),
    "torch.optim.sgd.sgd(grad_scale)": Internal(
        "kernels.torch_internals", "gradients are scaled before the step"
    ),
    "torch.Tensor._version": Internal(
        "kernels.torch_internals", "weight normalization is computed in each step"
    ),
    "torch._use_cudnn_rnn_flatten_weight": Internal(
        "kernels.recurrent", "recurrent layers run step by step on a GPU"
    ),
    "torch._cudnn_rnn_flatten_weight": Internal(
        "kernels.recurrent", "recurrent layers run step by step on a GPU"
    ),
    "torch.utils._python_dispatch.TorchDispatchMode": Internal(
        "kernels.operations",
        "torch.overrides.TorchFunctionMode, which does not see a backward pass",
    ),
}
"""Each name with its path; an argument that torch does not document is in parentheses."""


@functools.cache
def internal(name: str) -> Any:
    """Look up a name of `INTERNALS`; None if torch lacks it, or if plain kernels exclude it."""
    if name not in INTERNALS:
        raise KeyError(name)
    # observers of operations compute nothing, so they are allowed with plain kernels
    if is_plain_torch() and not name.startswith("torch.utils."):
        return None
    return _resolve(name)


def _resolve(name: str) -> Any:
    """Follow a path from torch: modules, attributes, and finally an argument in parentheses."""
    path, _, argument = name.rstrip(")").partition("(")
    value: Any = torch
    place = "torch"
    for part in path.split(".")[1:]:
        place = f"{place}.{part}"
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(place)
            except ImportError:
                return None
    if argument and argument not in inspect.signature(value).parameters:
        return None
    return value


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
    """Move each tensor toward its target by the fraction `share` of the distance, in place."""
    approach = internal("torch._foreach_lerp_")
    if approach is not None:
        approach(tensors, targets, share)
        return
    for tensor, target in zip(tensors, targets, strict=True):
        tensor.lerp_(target, share)


def fused_scaling(optimizer: str, gradients: Sequence[Tensor], scale: float) -> dict[str, Tensor]:
    """
    Return the argument that lets a fused optimizer step scale the gradients, or scale them now.

    `optimizer`: ``adamw`` or ``sgd``, of `torch.optim`.
    """
    if internal(_SCALES[optimizer]) is None:
        scale_all(gradients, scale)
        return {}
    # the kernels divide by this number
    return {"grad_scale": torch.tensor(1.0 / scale, device=gradients[0].device)}


def change_count(tensor: Tensor) -> int | None:
    """Count the in-place changes of a tensor; None if torch does not provide the count."""
    version = internal("torch.Tensor._version")
    return None if version is None else int(version.__get__(tensor))
