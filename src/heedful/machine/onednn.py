"""Matrix products by oneDNN, which torch brings along, where it is faster than torch's own."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


def has_onednn_kernel(x: Tensor) -> bool:
    """
    Decide whether oneDNN multiplies tensors of this device and type fast.

    Constant during a run, so a resumed run uses the same kernels.
    """
    if x.device.type != "cpu" or not _HAS_ONEDNN or not torch.backends.mkldnn.enabled:
        return False
    return x.dtype == torch.float32 or (x.dtype == torch.bfloat16 and _HAS_BF16)


_HAS_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(
    torch.ops.mkldnn, "_linear_pointwise"
)
_HAS_BF16 = _HAS_ONEDNN and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


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
        kind = "relu" if relu else "none"
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, kind, [], "")
        return out
    out = nn.functional.linear(x, weight, bias)
    return out.relu_() if relu else out
