"""
Names of torch that its documentation does not promise, and what is computed without each.

Most of them save a pass over memory, or a change of layout in every call. A later torch may drop
one, so `internal` looks a name up when it is used. Where it is missing, its caller computes the
same by documented functions. No other module names an internal of torch;
``tests/structure/test_torch_internals.py`` refuses it.
"""

import functools
import importlib
import inspect
from typing import Any, NamedTuple

import torch

from heedful.kernels.switch import is_plain_torch


class Internal(NamedTuple):
    """Where a name is used, and what replaces it."""

    modules: tuple[str, ...]
    """Modules of heedful, without the name of the package."""
    instead: str
    """What is computed where torch lacks the name."""


INTERNALS = {
    "torch.ops.mkldnn._linear_pointwise": Internal(
        ("kernels.linear", "kernels.quantized"),
        "torch.nn.functional.linear; weights are not prepacked",
    ),
    "torch.ops.mkldnn._is_mkldnn_bf16_supported": Internal(
        ("kernels.linear",), "the processor's flags"
    ),
    "torch.ops.mkldnn._reorder_linear_weight": Internal(
        ("kernels.quantized",), "weights are not prepacked"
    ),
    "torch.ops.onednn.qlinear_prepack": Internal(
        ("kernels.quantized",), "products of the rounded numbers in fp32"
    ),
    "torch.ops.onednn.qlinear_pointwise": Internal(
        ("kernels.quantized",), "products of the rounded numbers in fp32"
    ),
    "torch.ops.aten.threshold_backward": Internal(("kernels.linear",), "torch.Tensor.masked_fill"),
    "torch.ops.aten._softmax_backward_data": Internal(
        ("kernels.attention",), "the derivative of softmax in fp32"
    ),
    "torch.ops.aten.sigmoid_backward": Internal(
        ("kernels.recurrent",), "the derivative of the sigmoid"
    ),
    "torch.ops.aten.embedding_dense_backward": Internal(
        ("kernels.linear",), "torch.Tensor.index_add_"
    ),
    "torch._foreach_copy_": Internal(("kernels.tensor_lists",), "torch.Tensor.copy_, in a loop"),
    "torch._foreach_mul_": Internal(("kernels.tensor_lists",), "torch.Tensor.mul_, in a loop"),
    "torch._foreach_lerp_": Internal(("kernels.tensor_lists",), "torch.Tensor.lerp_, in a loop"),
    "torch.optim.adamw.adamw(grad_scale)": Internal(
        ("kernels.tensor_lists",), "gradients are scaled before the step"
    ),
    "torch.optim.sgd.sgd(grad_scale)": Internal(
        ("kernels.tensor_lists",), "gradients are scaled before the step"
    ),
    "torch.Tensor._version": Internal(
        ("kernels.tensor_lists",), "normed weights are computed in each step"
    ),
    "torch._use_cudnn_rnn_flatten_weight": Internal(
        ("kernels.recurrent",), "recurrent layers run step by step on a GPU"
    ),
    "torch._cudnn_rnn_flatten_weight": Internal(
        ("kernels.recurrent",), "recurrent layers run step by step on a GPU"
    ),
    "torch.utils._python_dispatch.TorchDispatchMode": Internal(
        ("kernels.operations",),
        "torch.overrides.TorchFunctionMode, which does not see a backward pass",
    ),
}
"""Each name with its path; an argument that torch does not document stands in parentheses."""


@functools.cache
def internal(name: str) -> Any:
    """Look up a name of `INTERNALS`; None where this torch lacks it, or kernels are plain."""
    if name not in INTERNALS:
        raise KeyError(name)
    # operators are kernels; the rest observes, or changes many tensors at once
    if name.startswith("torch.ops.") and is_plain_torch():
        return None
    return _resolve(name)


def _resolve(name: str) -> Any:
    """Follow a path from torch: modules, attributes, and last an argument in parentheses."""
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
