"""
8-bit integer matrix products in the layout of ``product.h``.

The plain twin is `heedful.model.inference.quantized.Int8Linear`, by torch and oneDNN.
"""

import ctypes
import functools

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.model.inference.native.compile import NoLibrary, native_library

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
    )


_FUNCTIONS = (
    *("lanes", "most_levels", "memory_for", "run_layers"),
    *("log_probabilities", "product_rows", "best_of_rows"),
)


def load_products() -> ctypes.CDLL:
    """Compile or load ``steps.c`` and declare its functions to ctypes; raises `NoLibrary`."""
    library = native_library("steps", _FUNCTIONS)
    if not library.lanes():
        raise NoLibrary("they are written for x86 processors with AVX2")
    pointer, number = ctypes.c_void_p, ctypes.c_int
    library.memory_for.restype = ctypes.c_size_t
    library.memory_for.argtypes = [pointer, pointer, number]
    library.run_layers.argtypes = [pointer, pointer, number, number, pointer]
    library.log_probabilities.argtypes = [pointer, pointer, *[number] * 3, *[pointer] * 3]
    library.product_rows.argtypes = [pointer, pointer, *[number] * 4, *[pointer] * 3]
    library.best_of_rows.argtypes = [pointer, *[number] * 4, pointer, pointer]
    for name in ("run_layers", "log_probabilities", "product_rows", "best_of_rows"):
        getattr(library, name).restype = None
    return library


@functools.cache
def _products() -> tuple[ctypes.CDLL | None, str]:
    """Load the compiled functions once, or keep the reason why there are none."""
    try:
        return load_products(), ""
    except NoLibrary as reason:
        return None, str(reason)


def native_products() -> ctypes.CDLL | None:
    """Return the compiled functions, or None if there are none."""
    return _products()[0]


def why_not_native() -> str:
    """Return why there are no compiled functions; None if there are."""
    return _products()[1]


def can_multiply(inner: int) -> bool:
    """Decide whether rows of this width, a multiple of four, can be multiplied."""
    return native_products() is not None and inner % _FOUR == 0


class NativeLinear(nn.Module):
    """
    A linear layer in 8 bits, by compiled functions.

    `weight`: the matrix; `d_in` must be a multiple of four. `library`: where the functions are;
    what was compiled for this machine if None.

    Each row of inputs is quantized with a scale of its own; weights once, with one scale per
    output. No gradients.

    Raises `RuntimeError` if there are no such functions here.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        nonnegative: bool = False,
        library: ctypes.CDLL | None = None,
    ) -> None:
        super().__init__()
        library = library or native_products()
        if library is None or weight.size(1) % _FOUR:
            raise RuntimeError("steps.c has no product for this matrix on this machine")
        self.library, self.nonnegative = library, nonnegative
        self.levels: int = library.most_levels()
        self.outer, self.inner = weight.shape
        steps, zero = (2 * self.levels + 1, 0) if nonnegative else (self.levels, self.levels + 1)
        weight = weight.detach().float()
        scales = weight.abs().amax(dim=1).clamp_(min=1e-12) / 127
        rounded = (weight / scales.unsqueeze(1)).round_().to(torch.int8)
        lanes: int = library.lanes()
        rows = -(-self.outer // (lanes * _GROUP)) * lanes * _GROUP
        filled = torch.zeros(rows, self.inner, dtype=torch.int8)
        filled[: self.outer] = rounded
        panels = filled.view(rows // lanes, lanes, self.inner // _FOUR, _FOUR)
        self.weights = panels.transpose(1, 2).contiguous()
        self.sums = filled.sum(dim=1, dtype=torch.int32) * zero
        self.scales, self.bias = torch.zeros(2, rows)
        self.scales[: self.outer] = scales / steps
        if bias is not None:
            self.bias[: self.outer] = bias.detach()

    @property
    def product(self) -> Product:
        """The C struct of this layer; valid as long as this module lives."""
        parts = (self.weights, self.sums, self.scales, self.bias)
        return Product(*(part.data_ptr() for part in parts), self.inner, self.outer)

    def forward(
        self, x: Float[Tensor, "*batch d_in"], relu: bool = False
    ) -> Float[Tensor, "*batch d_out"]:
        """Quantize the rows, multiply, and scale back."""
        rows = x.float().reshape(-1, self.inner).contiguous()
        rounded = torch.empty(len(rows), self.inner, dtype=torch.uint8)
        largest = torch.empty(len(rows))
        out = torch.empty(len(rows), self.outer)
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
