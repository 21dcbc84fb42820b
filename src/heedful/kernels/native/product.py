"""
Matrix multiplication in fp32, in bf16 and with 8-bit integers, in the layout of ``product.h``.

The plain equivalents are `heedful.kernels.linear.PrepackedLinear` and `Int8Linear`, which use torch
and oneDNN.
"""

import ctypes
import functools
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.kernels.native.compile import NoLibrary, native_library
from heedful.kernels.torch_internals import SWITCH, is_plain_torch

_FOUR = 4
_GROUP = 4


class Product(ctypes.Structure):
    """The C struct ``Product`` of ``product.h``."""

    _fields_ = (
        ("weights", ctypes.c_void_p),
        ("sums", ctypes.c_void_p),
        ("scales", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("inner", ctypes.c_int),
        ("outer", ctypes.c_int),
        ("kind", ctypes.c_int),
    )


_FUNCTIONS = (
    *("lanes", "can_multiply_bfloat16", "inputs_at_once", "most_levels", "memory_for"),
    "run_layers",
    *("log_probabilities", "product_rows", "best_of_rows", "best_continuations"),
    *("loss_rows", "add_thinned", "lstm_cell", "lstm_cell_gradients", "rotate"),
    *("short_attention_memory", "short_attention", "short_attention_gradients"),
)


def _functions_of(library: ctypes.CDLL) -> tuple[str, ...]:
    """List the functions that a library must have; none if it was compiled without AVX2."""
    return () if hasattr(library, "lanes") and not library.lanes() else _FUNCTIONS


def load_products() -> ctypes.CDLL:
    """Compile or load ``steps.c`` and declare its functions to ctypes, or raise `NoLibrary`."""
    library = native_library("steps", _functions_of)
    if not library.lanes():
        raise NoLibrary("they need an x86 processor with AVX2")
    pointer, number = ctypes.c_void_p, ctypes.c_int
    library.memory_for.restype = ctypes.c_size_t
    library.memory_for.argtypes = [pointer, pointer, number]
    library.run_layers.argtypes = [pointer, pointer, number, number, pointer]
    library.log_probabilities.argtypes = [pointer, pointer, *[number] * 3, *[pointer] * 3]
    library.product_rows.argtypes = [pointer, pointer, *[number] * 4, *[pointer] * 3]
    library.best_of_rows.argtypes = [pointer, *[number] * 4, pointer, pointer]
    library.best_continuations.argtypes = [*[pointer] * 2, *[number] * 6, *[pointer] * 6]
    library.loss_rows.argtypes = [
        *(pointer, pointer, number, number, ctypes.c_float, number, number),
        *[pointer] * 4,
    ]
    library.add_thinned.argtypes = [
        *(pointer, pointer, ctypes.c_int64, ctypes.c_uint64, number, ctypes.c_float),
        *(number, number, pointer),
    ]
    library.lstm_cell.argtypes = [*[pointer] * 3, *[number] * 4, *[pointer] * 3]
    library.lstm_cell_gradients.argtypes = [*[pointer] * 5, *[number] * 4, *[pointer] * 2]
    library.rotate.argtypes = [
        *(pointer, ctypes.c_int64, pointer, ctypes.c_int64, pointer, pointer),
        *(ctypes.c_int64, ctypes.c_int64, number, number, ctypes.c_float, number, number, pointer),
    ]
    library.short_attention_memory.argtypes = [number] * 4
    library.short_attention.argtypes = [pointer] * 3
    library.short_attention_gradients.argtypes = [pointer] * 6
    for name in ("run_layers", *_FUNCTIONS[_FUNCTIONS.index("log_probabilities") :]):
        getattr(library, name).restype = None
    library.short_attention_memory.restype = ctypes.c_size_t
    return library


@functools.cache
def _products() -> tuple[ctypes.CDLL | None, str]:
    """Load the compiled functions at the first call, or return the reason why there are none."""
    if is_plain_torch():
        return None, f"{SWITCH}=plain turned them off"
    try:
        return load_products(), ""
    except NoLibrary as reason:
        return None, str(reason)


@functools.cache
def native_products() -> ctypes.CDLL | None:
    """Return the compiled functions, or None if there are none."""
    return _products()[0]


FLOATS = (torch.float32, torch.bfloat16)
"""Types of tensors that the C functions for training read."""


def is_plain(x: Tensor) -> bool:
    """Return whether C functions can read a tensor's values in the CPU's memory."""
    return type(x) in (Tensor, nn.Parameter) and x.device.type == "cpu" and not x.is_neg()


def kernels_kind(device: torch.device) -> str:
    """
    Return the kind of training kernels for attention, loss and dropout; kinds differ in rounding.

    On a CPU, `torch` means functions of torch alone, and `plain` means uncompiled kernels.
    `compiled-16` and `compiled-8` give the number of values in a vector, which determines the order
    of sums. On a GPU, `plain` means functions of torch alone, and `tiles` means the kernels of
    `heedful.kernels.varlen` and other kernels in Triton.
    """
    if is_plain_torch():
        return "torch" if device.type == "cpu" else "plain"
    if device.type == "cuda":
        return "tiles"
    library = native_products() if device.type == "cpu" else None
    return "plain" if library is None else f"compiled-{library.lanes()}"


def compiled_origin() -> str | None:
    """Return the origin of the compiled functions; None if there are none."""
    library = native_products()
    if library is None:
        return None
    path = Path(library._name)
    is_built = path.parent == Path(__file__).parent
    return f"of the wheel, {path.stem.partition('-')[2]}" if is_built else "compiled here"


def why_not_native() -> str:
    """Return why there are no compiled functions; empty if there are."""
    return _products()[1]


def can_multiply(inner: int) -> bool:
    """Return whether rows of this width can be multiplied; the width must be a multiple of four."""
    return native_products() is not None and inner % _FOUR == 0


def can_multiply_bf16() -> bool:
    """Return whether the compiled functions multiply in bf16, which needs AVX512-BF16."""
    library = native_products()
    return library is not None and bool(library.can_multiply_bfloat16())


FP32, BF16, INT8 = range(3)  # number types, as in `numbers.h`
_BYTES = {FP32: 0, BF16: 2, INT8: 1}  # bytes per rounded input value


class NativeLinear(nn.Module):
    """
    A linear layer with compiled functions and without gradients.

    `weight`: the matrix; `d_in` must be a multiple of four. `library`: library of the functions;
    None means the library for this machine.

    The result for a row does not depend on the other rows.

    Raises `RuntimeError` if this machine has no compiled functions, or if `d_in` is not a multiple
    of four.
    """

    kind = FP32
    """Type of inputs and weights."""
    levels = 0
    """Largest absolute value of a weight in 8 bits, and of an input unless `nonnegative`."""
    nonnegative = False
    weights: Tensor
    sums: Tensor | None = None
    scales: Tensor | None = None

    def __init__(
        self, weight: Tensor, bias: Tensor | None, library: ctypes.CDLL | None = None
    ) -> None:
        super().__init__()
        library = library or native_products()
        if library is None or weight.size(1) % _FOUR:
            raise RuntimeError("steps.c cannot multiply by this matrix on this machine")
        self.library = library
        self.outer, self.inner = weight.shape
        self.lanes: int = library.lanes()
        self.filled = -(-self.outer // (self.lanes * _GROUP)) * self.lanes * _GROUP
        self.bias = torch.zeros(self.filled)
        if bias is not None:
            self.bias[: self.outer] = bias.detach()

    def _panels(self, filled: Tensor, together: int) -> Tensor:
        """Arrange a matrix in panels; an output's weights for several inputs are adjacent."""
        shape = (self.filled // self.lanes, self.lanes, filled.size(1) // together, together)
        return filled.view(shape).transpose(1, 2).contiguous()

    @property
    def product(self) -> Product:
        """The C struct of this layer; valid as long as this module exists."""
        parts = (self.weights, self.sums, self.scales, self.bias)
        pointers = (None if part is None else part.data_ptr() for part in parts)
        return Product(*pointers, self.inner, self.outer, self.kind)

    def forward(
        self, x: Float[Tensor, "*batch d_in"], relu: bool = False
    ) -> Float[Tensor, "*batch d_out"]:
        """Multiply rows; in 8 bits, first quantize the rows, and finally scale the results."""
        rows = x.float().reshape(-1, self.inner).contiguous()
        out = torch.empty(len(rows), self.outer)
        rounded, largest = self.room(len(rows))
        self.library.product_rows(
            ctypes.byref(self.product),
            rows.data_ptr(),
            len(rows),
            self.levels,
            int(self.nonnegative),
            torch.get_num_threads(),
            rounded.data_ptr(),
            largest.data_ptr(),
            out.data_ptr(),
        )
        return (out.relu_() if relu else out).view(*x.shape[:-1], self.outer)

    def room(self, rows: int) -> tuple[Tensor, Tensor]:
        """Allocate buffers for rounded rows and for each row's largest value; unused in fp32."""
        rows = 0 if self.kind == FP32 else rows
        # the functions also read four bytes after the last row
        size = rows * self.inner * _BYTES[self.kind] + _FOUR
        return torch.empty(size, dtype=torch.uint8), torch.empty(rows)


class NativeFp32Linear(NativeLinear):
    """A linear layer in fp32, computed by compiled functions."""

    def __init__(
        self, weight: Tensor, bias: Tensor | None, library: ctypes.CDLL | None = None
    ) -> None:
        super().__init__(weight, bias, library)
        filled = torch.zeros(self.filled, self.inner)
        filled[: self.outer] = weight.detach()
        self.weights = self._panels(filled, 1)


class NativeBf16Linear(NativeLinear):
    """
    A linear layer in bf16 with compiled functions; inputs and weights are rounded, sums are fp32.

    Use this class only if `can_multiply_bf16`.
    """

    kind = BF16

    def __init__(
        self, weight: Tensor, bias: Tensor | None, library: ctypes.CDLL | None = None
    ) -> None:
        super().__init__(weight, bias, library)
        if not self.library.can_multiply_bfloat16():
            raise RuntimeError("steps.c cannot multiply in bf16 on this machine")
        filled = torch.zeros(self.filled, self.inner, dtype=torch.bfloat16)
        filled[: self.outer] = weight.detach()
        self.weights = self._panels(filled, 2)


class NativeInt8Linear(NativeLinear):
    """
    A linear layer in 8 bits, computed by compiled functions.

    `nonnegative`: whether inputs come from a ReLU.

    Each row of inputs is quantized with its own scale. Weights are quantized once, with one scale
    per output. If the processor adds products in 16 bits (AVX2 without VNNI), inputs and weights
    have 7 bits.
    """

    kind = INT8

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        nonnegative: bool = False,
        library: ctypes.CDLL | None = None,
    ) -> None:
        super().__init__(weight, bias, library)
        self.nonnegative = nonnegative
        self.levels: int = self.library.most_levels()
        steps = 2 * self.levels + 1 if nonnegative else self.levels
        zero = 0 if nonnegative else self.levels + 1
        weight = weight.detach().float()
        scales = weight.abs().amax(dim=1).clamp_(min=1e-12) / self.levels
        at_once = self.library.inputs_at_once()
        inner = -(-self.inner // at_once) * at_once
        filled = torch.zeros(self.filled, inner, dtype=torch.int8)
        filled[: self.outer, : self.inner] = (weight / scales.unsqueeze(1)).round_()
        self.weights = self._panels(filled, _FOUR)
        self.sums = filled.sum(dim=1, dtype=torch.int32) * zero
        self.scales = torch.zeros(self.filled)
        self.scales[: self.outer] = scales / steps
