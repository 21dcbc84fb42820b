"""
Matrix multiplications, column sums and table lookups with the fastest kernel.

On a CPU torch's `linear` uses MKL in fp32, which is slow on processors not made by Intel. In bf16
it adds the bias in a separate pass. The library oneDNN, which torch includes, is faster in both
types, but torch offers it only through a function without gradients. So `linear` here defines its
gradients explicitly. On other devices, in other types and without oneDNN, torch's own functions are
used; the choice does not change during a run.

A lookup is a multiplication by one-hot rows, and its gradient is summed in fp32. In bf16 the
gradient of a frequent token sums hundreds of terms, too many for eight bits of mantissa.

Linear layers with constant weights are prepacked once. A plain linear layer reorders its weights in
every call. For the few rows of a search step, reordering costs as much as the multiplication.

::

    PrepackedLinear    the same numbers in the order in which oneDNN reads them
    Int8Linear         weights as 8-bit integers with one scale for each output, inputs as 8-bit
                       integers with one scale for each row, sums in 32 bits

Each row is rounded on its own, so the result for a sentence does not depend on other sentences.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from heedful.kernels.fusion import is_fused
from heedful.kernels.torch_internals import internal, is_plain_torch
from heedful.machine.processor import int8_levels, processor_facts


def matmul(
    x: Float[Tensor, "rows out"], weight: Float[Tensor, "out width"]
) -> Float[Tensor, "rows width"]:
    """
    Compute ``x @ weight``, for the gradient of `linear_forward`.

    The function has no gradients. In bf16 torch itself uses oneDNN here.
    """
    if x.dtype == torch.float32 and has_onednn_kernel(x):
        return linear_forward(x, weight.t())
    return torch.mm(x, weight)


def bias_gradient(x: Float[Tensor, "rows width"]) -> Float[Tensor, " width"]:
    """
    Sum the rows: the gradient of a bias.

    On a CPU, a multiplication by ones takes half the time of torch's sum of bf16 columns.
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
    Compute `torch.nn.functional.linear`, then ReLU if `relu`, with gradients.

    The function uses torch's own kernel where oneDNN is not faster; results agree up to rounding.
    """
    if has_onednn_kernel(x) and x.numel():
        # oneDNN is a thousand times slower with a slice of a matrix's columns than with a copy of
        # it
        return _Linear.apply(x, weight.contiguous(), bias, relu)
    if relu and bias is not None and has_relu_epilogue(x):
        with_relu: Tensor = linear_relu(x.flatten(0, -2), weight, bias)
        return with_relu.unflatten(0, x.shape[:-1])
    out = nn.functional.linear(x, weight, bias)
    return out.relu() if relu else out


def has_relu_epilogue(x: Tensor) -> bool:
    """Return whether a GPU's matrix multiplication applies ReLU in the same kernel."""
    is_known = x.device.type == "cuda" and x.dtype in (torch.bfloat16, torch.float16)
    return is_known and x.dim() > 1 and is_fused()


@torch.library.custom_op("heedful::linear_relu", mutates_args=())
def linear_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute ``relu(x @ weight.T + bias)`` with one kernel on a GPU, otherwise with two."""
    multiply = internal("torch._addmm_activation") if x.is_cuda else None
    if multiply is None:
        return nn.functional.linear(x, weight, bias).relu_()
    return multiply(bias, x, weight.t())


@linear_relu.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    del bias
    return x.new_empty(x.size(0), weight.size(0))


def _keep_of_relu(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    """Save the tensors from which the gradients are computed."""
    ctx.save_for_backward(inputs[0], inputs[1], output)


def _differentiate_relu(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradients of rows, weight and bias."""
    x, weight, out = ctx.saved_tensors
    before = torch.where(out > 0, gradient, 0.0)
    return before @ weight, before.t() @ x, before.sum(dim=0)


linear_relu.register_autograd(_differentiate_relu, setup_context=_keep_of_relu)


class Linear(nn.Linear):
    """A linear layer with the fastest CPU kernel, stored like `torch.nn.Linear`."""

    def forward(
        self, x: Float[Tensor, "*batch width"], relu: bool = False
    ) -> Float[Tensor, "*batch out"]:
        """Multiply and add the bias."""
        return linear(x, self.weight, self.bias, relu)


def split(
    x: Float[Tensor, "*batch width"], widths: Sequence[int]
) -> tuple[Float[Tensor, "*batch _"], ...]:
    """
    Split the last axis into views; the backward pass does not copy adjacent gradients.

    `torch.split` would copy them into one tensor.
    """
    is_cpu = x.device.type == "cpu"  # a GPU's kernels write separate gradients
    if not (is_cpu and torch.is_grad_enabled() and x.requires_grad) or is_plain_torch():
        return x.split([*widths], dim=-1)
    return _Split.apply(x, widths)


def join(*parts: Float[Tensor, "*batch _"]) -> Float[Tensor, "*batch width"]:
    """Undo `split`: return a view of parts that are adjacent in memory, else a copy."""
    if is_plain_torch():
        return torch.cat(parts, dim=-1)
    if not (torch.is_grad_enabled() and any(part.requires_grad for part in parts)):
        return _concatenate(parts)
    return _Join.apply(*parts)


def lie_side_by_side(*parts: Tensor) -> bool:
    """Return whether tensors are adjacent slices, on the last axis, of one tensor."""
    first = parts[0]
    if any(type(part) is not Tensor or part.is_meta or part.stride(-1) != 1 for part in parts):
        return False
    storage, place = first.untyped_storage().data_ptr(), first.data_ptr()
    for part in parts:
        if part.untyped_storage().data_ptr() != storage or part.data_ptr() != place:
            return False
        if part.shape[:-1] != first.shape[:-1] or part.stride() != first.stride():
            return False
        place += part.size(-1) * part.element_size()
    return len({part.dtype for part in parts}) == 1


def _concatenate(parts: tuple[Tensor, ...]) -> Tensor:
    """Make one tensor from the parts, without gradients."""
    if not lie_side_by_side(*parts):
        return torch.cat(parts, dim=-1)
    shape = (*parts[0].shape[:-1], sum(part.size(-1) for part in parts))
    return parts[0].as_strided(shape, parts[0].stride())


class _Split(torch.autograd.Function):
    """`split`, with `join` as its backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, widths: Sequence[int]) -> tuple[Tensor, ...]:
        return x.split([*widths], dim=-1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return join(*gradients), None


class _Join(torch.autograd.Function):
    """`join`, with `split` as its backward pass."""

    @staticmethod
    def forward(ctx: Any, *parts: Tensor) -> Tensor:
        ctx.widths = [part.size(-1) for part in parts]
        return _concatenate(parts)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        return split(gradient, ctx.widths)


class _Linear(torch.autograd.Function):
    """A linear map with oneDNN kernels in the forward and backward passes."""

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
    """Compute the gradient of a ReLU's input: the output's gradient at positive outputs, else 0."""
    differentiate = internal("torch.ops.aten.threshold_backward")
    if differentiate is None:
        return gradient.masked_fill(out <= 0, 0.0)
    return differentiate(gradient, out, 0)


_HAS_ONEDNN = torch.backends.mkldnn.is_available()


def has_onednn_kernel(x: Tensor) -> bool:
    """
    Return whether oneDNN has fast kernels for the tensor's device and type.

    The result is constant during a run, so a resumed run uses the same kernels.
    """
    if x.device.type != "cpu" or not _HAS_ONEDNN or not torch.backends.mkldnn.enabled:
        return False
    if internal("torch.ops.mkldnn._linear_pointwise") is None:
        return False
    return x.dtype == torch.float32 or (x.dtype == torch.bfloat16 and _multiplies_bf16())


def _multiplies_bf16() -> bool:
    """Test whether oneDNN has bf16 kernels for this processor."""
    is_supported = internal("torch.ops.mkldnn._is_mkldnn_bf16_supported")
    return _has_bf16_instructions() if is_supported is None else bool(is_supported())


@functools.cache
def _has_bf16_instructions() -> bool:
    """Look for AVX-512 or AVX-NE-CONVERT in the processor's flags; bf16 in oneDNN needs either."""
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

    The function has no gradients: call it inside a function that defines gradients, such as
    `linear`.
    """
    if has_onednn_kernel(x):
        multiply = internal("torch.ops.mkldnn._linear_pointwise")
        return multiply(x, weight, bias, "relu" if relu else "none", [], "")
    out = nn.functional.linear(x, weight, bias)
    return out.relu_() if relu else out


def lookup(
    ids: Int[Tensor, "batch time"], weight: Float[Tensor, "vocabulary d_model"]
) -> Float[Tensor, "batch time d_model"]:
    """Look up the rows of a table, as `torch.nn.functional.embedding` does, with gradients."""
    if not torch.is_grad_enabled() or is_plain_torch():
        return nn.functional.embedding(ids, weight)
    return _Lookup.apply(weight, ids)


class _Lookup(torch.autograd.Function):
    """Embedding lookup whose gradient is summed in fp32, whatever the type of the table."""

    @staticmethod
    def forward(ctx, table: Tensor, ids: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(ids)
        ctx.rows = table.size(0)
        return nn.functional.embedding(ids, table)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[no-untyped-def]
        (ids,) = ctx.saved_tensors
        if gradient.device.type == "cpu" and gradient.dtype != torch.float32:
            return _add_rows(gradient, ids, ctx.rows), None
        return _sum_rows(gradient.float(), ids, ctx.rows).to(gradient.dtype), None


def _sum_rows(gradient: Tensor, ids: Tensor, rows: int) -> Tensor:
    """Sum the gradient rows of each token into a table."""
    add = internal("torch.ops.aten.embedding_dense_backward")
    if add is None:
        total = gradient.new_zeros(rows, gradient.size(-1))
        return total.index_add_(0, ids.reshape(-1), gradient.reshape(-1, gradient.size(-1)))
    return add(gradient, ids, rows, -1, False)


def _add_rows(gradient: Tensor, ids: Tensor, rows: int) -> Tensor:
    """Sum the gradient rows of each token in fp32, only for tokens that occur."""
    used, place = ids.unique(return_inverse=True)  # (used,), (batch, time)
    width = gradient.size(-1)
    sums = torch.zeros(len(used), width)
    sums.index_add_(0, place.reshape(-1), gradient.reshape(-1, width).float())
    total = torch.zeros(rows, width, dtype=gradient.dtype)
    return total.index_copy_(0, used.long(), sums.to(gradient.dtype))


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

    On the CPU of `docs/results/speed.md` it multiplies four rows twice as fast as
    `torch.nn.functional.linear`, and many rows slightly faster. It has no gradients.
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
        """Multiply by the prepacked weights and add the bias."""
        if not self.is_packed:
            plain = nn.functional.linear(x, self.packed, self.bias)
            return plain.relu_() if relu else plain
        multiply = internal("torch.ops.mkldnn._linear_pointwise")
        return multiply(x, self.packed, self.bias, "relu" if relu else "none", [], "")


class Int8Linear(nn.Module):
    """
    A linear layer with inputs and weights rounded to 8 or 7 bits, without gradients.

    `levels`: largest absolute value of a quantized weight, and of an input unless `nonnegative`;
    None means the largest that this processor supports.

    The relative error of an output is about 0.8%, or 1.6% if `levels` is 63; in bf16 it is 0.2%.
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
        # inputs are stored without sign: -levels as 1, zero as levels + 1
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
        return multiply(
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

    def forward(
        self, x: Float[Tensor, "*batch d_in"], relu: bool = False
    ) -> Float[Tensor, "*batch d_out"]:
        """Quantize the rows, multiply, and scale back."""
        sizes = x.abs() if self.zero else x
        largest = sizes.amax(dim=-1, keepdim=True).clamp_(min=1e-12)
        # adding a half and truncating rounds to the nearest
        rounded = torch.addcmul(self.middle, x, largest.reciprocal(), value=self.levels)
        product = self.multiply(rounded.to(torch.uint8))
        out = torch.addcmul(self.bias, product, largest) if self.has_bias else product * largest
        return out.relu_() if relu else out


LinearFactory = Callable[[Tensor, Tensor | None], nn.Module]
LINEAR_FACTORIES: dict[str, LinearFactory] = {"packed": PrepackedLinear, "int8": Int8Linear}
