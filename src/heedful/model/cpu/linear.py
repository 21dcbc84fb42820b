"""
Matrix products and column sums by the fastest CPU kernel.

On a processor torch's `linear` goes through MKL in fp32, which is slow on processors of other
makers, and in bf16 it adds the bias in a pass of its own. oneDNN, which torch brings along, does
better in both, but torch offers it only by a name that knows no gradients. So `linear` here has its
gradients written out. On other devices, in other types and where oneDNN is missing everything is
torch's own; which way is taken depends on device and type alone.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.machine.onednn import has_onednn_kernel, linear_forward
from heedful.machine.torch_internals import internal


def matmul(
    x: Float[Tensor, "rows out"], weight: Float[Tensor, "out width"]
) -> Float[Tensor, "rows width"]:
    """
    Compute ``x @ weight``, the gradient of `linear_forward`.

    No gradients of its own. In bf16 torch already uses oneDNN here.
    """
    if x.dtype == torch.float32 and has_onednn_kernel(x):
        return linear_forward(x, weight.t())
    return torch.mm(x, weight)


def bias_gradient(x: Float[Tensor, "rows width"]) -> Float[Tensor, " width"]:
    """
    Sum the rows: the gradient of a bias.

    On a CPU a product with ones takes half the time of torch's sum of bf16 columns.
    """
    if has_onednn_kernel(x):
        return torch.mm(torch.ones(1, x.size(0), dtype=x.dtype), x).squeeze(0)
    return x.sum(dim=0)


def linear(
    x: Float[Tensor, "*batch width"],
    weight: Float[Tensor, "out width"],
    bias: Float[Tensor, " out"] | None = None,
    relu: bool = False,
) -> Float[Tensor, "*batch out"]:
    """
    Compute `torch.nn.functional.linear`, with gradients.

    Uses torch's own kernel wherever oneDNN is not faster; the tests hold the two equal.
    """
    if has_onednn_kernel(x) and x.numel():
        # oneDNN multiplies by columns cut out of a matrix a thousand times as slowly as by a copy
        out: Tensor = _Linear.apply(x, weight.contiguous(), bias, relu)
        return out
    out = nn.functional.linear(x, weight, bias)
    return out.relu() if relu else out


class Linear(nn.Linear):
    """A linear layer by the fastest CPU kernel, stored like `torch.nn.Linear`."""

    def forward(
        self, x: Float[Tensor, "*batch width"], relu: bool = False
    ) -> Float[Tensor, "*batch out"]:
        """Multiply and add the bias."""
        return linear(x, self.weight, self.bias, relu)


class _Linear(torch.autograd.Function):
    """A linear map with oneDNN kernels forwards and backwards."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool) -> Tensor:
        rows = x.reshape(-1, x.size(-1))
        out = linear_forward(rows, weight, bias, relu)
        ctx.save_for_backward(rows, weight, out if relu else None)
        ctx.has_bias = bias is not None
        return out.view(*x.shape[:-1], weight.size(0))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight, out = ctx.saved_tensors
        d_out = gradient.reshape(-1, weight.size(0))
        if out is not None:
            d_out = _relu_gradient(d_out, out)
        d_x = d_weight = d_bias = None
        if ctx.needs_input_grad[0]:
            d_x = matmul(d_out, weight).view(*gradient.shape[:-1], weight.size(1))
        if ctx.needs_input_grad[1]:
            d_weight = torch.mm(d_out.t(), rows)
        if ctx.has_bias and ctx.needs_input_grad[2]:
            d_bias = bias_gradient(d_out)
        return d_x, d_weight, d_bias, None


def _relu_gradient(gradient: Tensor, out: Tensor) -> Tensor:
    """Compute the gradient before a ReLU: that of its output where the output is positive."""
    differentiate = internal("torch.ops.aten.threshold_backward")
    if differentiate is None:
        return gradient.masked_fill(out <= 0, 0.0)
    d_x: Tensor = differentiate(gradient, out, 0)
    return d_x
