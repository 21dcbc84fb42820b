"""Triton's kernels, if Triton can compile them for a GPU; each runs on its tensors' device."""

import functools
import warnings
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

_FUNCTIONS = ("loss_rows", "attention", "attention_gradients", "add_norm", "add_norm_gradients")


@functools.cache
def triton_kernels(device: torch.device) -> Any:
    """Return the functions of Triton's kernels; None without Triton, or if it cannot compile."""
    if find_spec("triton") is None:
        return None
    try:
        module = import_module("heedful.kernels.triton_kernels")
        functions = {name: _on_its_device(getattr(module, name)) for name in _FUNCTIONS}
        scores = torch.zeros(1, 8, device=device)
        target = torch.zeros(1, dtype=torch.int64, device=device)
        functions["loss_rows"](scores, target, target == 0, 0.0, 1.0)
    except Exception as error:  # many kinds of errors, such as a missing C compiler
        reason = str(error).strip().partition("\n")[0]
        warnings.warn(
            f"Triton cannot compile its kernels here, so torch's are used: {reason}", stacklevel=2
        )
        return None
    return SimpleNamespace(**functions)


def _on_its_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function launch on the device of its first tensor, not on the current device."""

    @functools.wraps(function)
    def launch(x: Tensor, *rest: Any) -> Any:
        with torch.cuda.device_of(x):
            return function(x, *rest)

    return launch
