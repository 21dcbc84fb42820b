"""
The functions of ``steps.c`` on tensors.

What they do is told there; the plain twins are the modules of `heedful.model.stacks` with the
products of `heedful.model.layouts`.
"""

import ctypes
from dataclasses import dataclass

import torch
from jaxtyping import BFloat16, Float, UInt8
from torch import Tensor

from heedful.model.native.compile import native_library

_INT, _POINTER, _FLOAT = ctypes.c_int, ctypes.c_void_p, ctypes.c_float
_SIGNATURES = {
    "round_rows": [_POINTER, *[_INT] * 4, _POINTER, _POINTER],
    "relu_rows": [*[_POINTER] * 3, *[_INT] * 4, _POINTER, _POINTER],
    "add_norm_rows": [*[_POINTER] * 6, _FLOAT, *[_INT] * 5, *[_POINTER] * 3],
    "attend_rows": [
        *[_POINTER] * 3,
        _INT,
        *[_POINTER] * 3,
        *[_INT] * 11,
        _POINTER,
        _POINTER,
    ],
    "log_softmax_rows": [*[_POINTER] * 3, *[_INT] * 3],
}


@dataclass(frozen=True)
class Rounded:
    """
    Hold rows as bytes.

    Attributes
    ----------
    bytes : Tensor of uint8, shape (rows, width)
        What a product of 8-bit integers reads.
    largest : Tensor of float32, shape (rows, 1)
        What the product must be multiplied by.

    Notes
    -----
    As `heedful.model.layouts.Int8Linear` makes them.
    """

    bytes: UInt8[Tensor, "rows width"]
    largest: Float[Tensor, "rows 1"]

    @classmethod
    def empty(cls, rows: int, width: int) -> "Rounded":
        """
        Make room.

        Parameters
        ----------
        rows, width : int
            How much.

        Returns
        -------
        Rounded
            Not yet written.

        Notes
        -----
        Every function here fills it wholly.
        """
        return cls(torch.empty(rows, width, dtype=torch.uint8), torch.empty(rows, 1))


@dataclass(frozen=True)
class Norm:
    """
    Hold what a layer norm multiplies and adds.

    Attributes
    ----------
    gain, shift : Tensor of float32, shape (width,)
        Weight and bias.
    epsilon : float
        Added to the variance.

    Notes
    -----
    Contiguous, on the processor.
    """

    gain: Float[Tensor, " width"]
    shift: Float[Tensor, " width"]
    epsilon: float


class NativeSteps:
    """
    Call the compiled functions.

    Parameters
    ----------
    levels : int
        Largest absolute value of a rounded number.

    Raises
    ------
    RuntimeError
        If there is no library here.

    Notes
    -----
    Threads are torch's, as many as it uses at the moment of the call.
    """

    def __init__(self, levels: int) -> None:
        library = native_library("steps")
        if library is None:
            raise RuntimeError("steps.c could not be compiled here")
        self.levels, self.library = levels, library
        for name, arguments in _SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, None

    def round(self, x: Float[Tensor, "rows width"]) -> Rounded:
        """
        Write rows as bytes.

        Parameters
        ----------
        x : Tensor of float32, shape (rows, width)
            Any numbers.

        Returns
        -------
        Rounded
            The same, in steps of a hundredth or so of the largest in each row.

        Notes
        -----
        The first pass of `Int8Linear.forward`.
        """
        rows, width = x.shape
        out = Rounded.empty(rows, width)
        self.library.round_rows(
            x.data_ptr(),
            rows,
            width,
            self.levels,
            torch.get_num_threads(),
            out.bytes.data_ptr(),
            out.largest.data_ptr(),
        )
        return out

    def relu(
        self, product: Float[Tensor, "rows width"], x: Rounded, bias: Float[Tensor, " width"]
    ) -> Rounded:
        """
        Finish a product and keep what is positive.

        Parameters
        ----------
        product : Tensor of float32, shape (rows, width)
            Of `x` and a matrix.
        x : Rounded
            What went into the product.
        bias : Tensor of float32, shape (width,)
            Added to every row.

        Returns
        -------
        Rounded
            With zero as 0 and the largest as 2 levels + 1.

        Notes
        -----
        Between the two products of equation 2.
        """
        rows, width = product.shape
        out = Rounded.empty(rows, width)
        self.library.relu_rows(
            product.data_ptr(),
            x.largest.data_ptr(),
            bias.data_ptr(),
            rows,
            width,
            self.levels,
            torch.get_num_threads(),
            out.bytes.data_ptr(),
            out.largest.data_ptr(),
        )
        return out

    def add_norm(
        self,
        product: Float[Tensor, "rows width"],
        x: Rounded,
        bias: Float[Tensor, " width"],
        states: Float[Tensor, "rows width"],
        norm: Norm,
        pre: bool,
        normal: Float[Tensor, "rows width"] | None = None,
    ) -> Rounded:
        """
        Finish a product, add it to the states and normalise.

        Parameters
        ----------
        product : Tensor of float32, shape (rows, width)
            Of `x` and a matrix.
        x : Rounded
            What went into the product.
        bias : Tensor of float32, shape (width,)
            Added to every row.
        states : Tensor of float32, shape (rows, width)
            What the sub-layer read; changed in place to what the next one is added to.
        norm : Norm
            Of this sub-layer, or with `pre` of the next.
        pre : bool
            Whether the states stay as they are before the norm.
        normal : Tensor of float32, shape (rows, width), optional
            Gets the normalised numbers.

        Returns
        -------
        Rounded
            The normalised numbers, which the next product reads.

        Notes
        -----
        `heedful.model.residual` without dropout.
        """
        rows, width = product.shape
        out = Rounded.empty(rows, width)
        self.library.add_norm_rows(
            product.data_ptr(),
            x.largest.data_ptr(),
            bias.data_ptr(),
            states.data_ptr(),
            norm.gain.data_ptr(),
            norm.shift.data_ptr(),
            norm.epsilon,
            int(pre),
            rows,
            width,
            self.levels,
            torch.get_num_threads(),
            out.bytes.data_ptr(),
            out.largest.data_ptr(),
            None if normal is None else normal.data_ptr(),
        )
        return out

    def attend(
        self,
        product: Float[Tensor, "rows in_width"],
        x: Rounded,
        bias: Float[Tensor, " in_width"],
        keys: BFloat16[Tensor, "sentences heads slots d_k"],
        values: BFloat16[Tensor, "sentences heads slots d_v"],
        barred: Float[Tensor, "sentences seen slots"],
        filled: int,
        newest: bool,
    ) -> Rounded:
        """
        Finish the product that makes queries, and look.

        Parameters
        ----------
        product : Tensor of float32, shape (rows, in_width)
            Of `x` and a matrix: queries, or queries, keys and values.
        x : Rounded
            What went into the product.
        bias : Tensor of float32, shape (in_width,)
            Added to every row.
        keys : Tensor of bfloat16, shape (sentences, heads, slots, d_k)
            What may be looked at; written to with `newest`.
        values : Tensor of bfloat16, shape (sentences, heads, slots, d_v)
            What is found there.
        barred : Tensor of float32, shape (sentences, width or 1, slots)
            Below zero where a hypothesis must not look.
        filled : int
            Slots in use.
        newest : bool
            Whether keys and values of the last slots come with the product.

        Returns
        -------
        Rounded
            What all heads of each row found, side by side.

        Notes
        -----
        `heedful.model.attention.biased_attention`.
        """
        sentences, heads, slots, d_k = keys.shape
        rows, d_v = len(product), values.size(3)
        out = Rounded.empty(rows, heads * d_v)
        self.library.attend_rows(
            product.data_ptr(),
            x.largest.data_ptr(),
            bias.data_ptr(),
            int(newest),
            keys.data_ptr(),
            values.data_ptr(),
            barred.data_ptr(),
            barred.size(2),
            int(barred.size(1) == 1),
            sentences,
            rows // sentences,
            heads,
            d_k,
            d_v,
            slots,
            filled,
            self.levels,
            torch.get_num_threads(),
            out.bytes.data_ptr(),
            out.largest.data_ptr(),
        )
        return out

    def log_softmax(
        self,
        product: Float[Tensor, "rows width"],
        x: Rounded,
        bias: Float[Tensor, " width"] | None,
    ) -> Float[Tensor, "rows width"]:
        """
        Finish a product and turn its rows into log-probabilities.

        Parameters
        ----------
        product : Tensor of float32, shape (rows, width)
            Of `x` and a matrix; changed in place.
        x : Rounded
            What went into the product.
        bias : Tensor of float32, shape (width,), optional
            Added to every row.

        Returns
        -------
        Tensor of float32, shape (rows, width)
            The same tensor; the exponentials of each row sum to one.

        Notes
        -----
        The end of a step, over the whole vocabulary.
        """
        rows, width = product.shape
        self.library.log_softmax_rows(
            product.data_ptr(),
            x.largest.data_ptr(),
            None if bias is None else bias.data_ptr(),
            rows,
            width,
            torch.get_num_threads(),
        )
        return product
