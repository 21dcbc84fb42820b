"""
Linear layers with constant weights, prepacked once for fast products.

A plain product lays its weights out anew in every call, which for the few rows of a search step
costs as much as the product itself. Two layouts:

::

    PrepackedLinear    the same numbers in the order in which oneDNN reads them
    Int8Linear         weights as 8-bit integers with one scale for each output, inputs as 8-bit
                       integers with one scale for each row, sums in 32 bits

Each row is rounded on its own, so what a sentence gets does not depend on its neighbours.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from heedful.kernels.torch_internals import internal
from heedful.machine.processor import int8_levels


def can_prepack(device: torch.device, dtype: torch.dtype) -> bool:
    """Test whether `PrepackedLinear` works on this CPU."""
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    x = torch.ones(2, 16, dtype=dtype)
    try:
        return bool((PrepackedLinear(x, None)(x) == 16).all())
    except (AttributeError, NotImplementedError, RuntimeError):
        return False


class PrepackedLinear(nn.Module):
    """
    A linear layer whose weights are prepacked for oneDNN.

    On the CPU of `docs/results/speed.md` four rows are multiplied twice as fast as by
    `torch.nn.functional.linear`, many rows a little faster. No gradients.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        reorder = internal("torch.ops.mkldnn._reorder_linear_weight")
        self.is_packed = None not in (reorder, internal("torch.ops.mkldnn._linear_pointwise"))
        self.packed = reorder(weight.detach()) if self.is_packed else weight.detach()
        self.bias = None if bias is None else bias.detach()

    def forward(
        self, x: Float[Tensor, "*batch d_in"], relu: bool = False
    ) -> Float[Tensor, "*batch d_out"]:
        """Multiply."""
        if not self.is_packed:
            plain = nn.functional.linear(x, self.packed, self.bias)
            return plain.relu_() if relu else plain
        multiply = internal("torch.ops.mkldnn._linear_pointwise")
        out: Tensor = multiply(x, self.packed, self.bias, "relu" if relu else "none", [], "")
        return out


class Int8Linear(nn.Module):
    """
    A linear layer with inputs and weights rounded to 8 bits, or to 7; no gradients.

    `levels`: largest absolute value of a quantized input or weight; what this processor supports
    if None.

    Relative error of a product about 0.8 %, with 63 levels twice that; bf16 has 0.2 %.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        nonnegative: bool = False,
        levels: int | None = None,
    ) -> None:
        super().__init__()
        levels = levels or int8_levels()
        # inputs are written without sign: -levels as 1, zero as levels + 1
        self.zero = 0 if nonnegative else levels + 1
        self.levels = 2 * levels + 1 if nonnegative else levels
        weight = weight.detach().float()
        self.scales = weight.abs().amax(dim=1).clamp_(min=1e-12) / levels
        rounded = (weight / self.scales.unsqueeze(1)).round_().to(torch.int8)
        prepack = internal("torch.ops.onednn.qlinear_prepack")
        self.is_packed = None not in (prepack, internal("torch.ops.onednn.qlinear_pointwise"))
        self.packed = prepack(rounded.contiguous(), None) if self.is_packed else rounded.float()
        self.zeros = torch.zeros(len(weight), dtype=torch.long)
        self.bias = torch.zeros(len(weight)) if bias is None else bias.detach().float()
        self.has_bias = bias is not None
        self.middle = torch.tensor(self.zero + 0.5)

    def multiply(self, rounded: UInt8[Tensor, "*batch d_in"]) -> Float[Tensor, "*batch d_out"]:
        """Multiply rows that are already quantized."""
        if not self.is_packed:
            sums = nn.functional.linear(rounded.float() - self.zero, self.packed)
            return sums * (self.scales / self.levels)
        multiply = internal("torch.ops.onednn.qlinear_pointwise")
        out: Tensor = multiply(
            rounded,
            1.0 / self.levels,
            self.zero,
            self.packed,
            self.scales,
            self.zeros,
            None,
            1.0,
            0,
            torch.float32,
            "none",
            [],
            "",
        )
        return out

    def forward(
        self, x: Float[Tensor, "*batch d_in"], relu: bool = False
    ) -> Float[Tensor, "*batch d_out"]:
        """Quantize the rows, multiply, and scale back."""
        sizes = x.abs() if self.zero else x
        largest = sizes.amax(dim=-1, keepdim=True).clamp_(min=1e-12)
        # a half more, and cut: that rounds
        rounded = torch.addcmul(self.middle, x, largest.reciprocal(), value=self.levels)
        product = self.multiply(rounded.to(torch.uint8))
        out = torch.addcmul(self.bias, product, largest) if self.has_bias else product * largest
        return out.relu_() if relu else out


LinearFactory = Callable[[Tensor, Tensor | None], nn.Module]
LINEAR_FACTORIES: dict[str, LinearFactory] = {"packed": PrepackedLinear, "int8": Int8Linear}
