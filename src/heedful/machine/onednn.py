"""Matrix products by oneDNN, which torch brings along, where it is faster than torch's own."""

import functools

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.machine.processor import processor_facts
from heedful.machine.torch_internals import internal

_HAS_ONEDNN = torch.backends.mkldnn.is_available()


def has_onednn_kernel(x: Tensor) -> bool:
    """
    Decide whether oneDNN multiplies tensors of this device and type fast.

    Constant during a run, so a resumed run uses the same kernels.
    """
    if x.device.type != "cpu" or not _HAS_ONEDNN or not torch.backends.mkldnn.enabled:
        return False
    if internal("torch.ops.mkldnn._linear_pointwise") is None:
        return False
    return x.dtype == torch.float32 or (x.dtype == torch.bfloat16 and _multiplies_bf16())


def _multiplies_bf16() -> bool:
    """Test whether oneDNN has kernels of bf16 for this processor."""
    is_supported = internal("torch.ops.mkldnn._is_mkldnn_bf16_supported")
    return _has_bf16_instructions() if is_supported is None else bool(is_supported())


@functools.cache
def _has_bf16_instructions() -> bool:
    """Find the instructions in the processor's flags: oneDNN computes bf16 by AVX-512 or AVX-NE."""
    for line in processor_facts("flags"):
        flags = {*line.split()}
        if {"avx512bw", "avx512dq", "avx512vl"} <= flags or "avx_ne_convert" in flags:
            return True
    return False


def linear_forward(
    x: Float[Tensor, "rows width"],
    weight: Float[Tensor, "out width"],
    bias: Float[Tensor, " out"] | None = None,
    relu: bool = False,
) -> Float[Tensor, "rows out"]:
    """
    Compute ``x @ weight.T + bias``, then ReLU if `relu`.

    No gradients: call it inside a function that has its own, as `heedful.model.cpu.linear` does.
    """
    if has_onednn_kernel(x):
        multiply = internal("torch.ops.mkldnn._linear_pointwise")
        out: Tensor = multiply(x, weight, bias, "relu" if relu else "none", [], "")
        return out
    out = nn.functional.linear(x, weight, bias)
    return out.relu_() if relu else out
