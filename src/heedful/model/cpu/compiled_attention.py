"""Attention of short rows in training, by the C functions of ``short_attention.h``."""

import ctypes
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from heedful.model.cpu.unpadding import Packing
from heedful.model.native.product import FLOATS, is_plain, native_products

_ADDRESS, _SIZE, _NUMBER = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int

# Positions of the real queries and of the real keys; None for padded rows.
Packings = tuple[Packing | None, Packing | None]


class _TokensStruct(ctypes.Structure):
    """The C struct ``Tokens``."""

    _fields_ = (("starts", _ADDRESS), ("places", _ADDRESS), ("apart", _NUMBER))


class _AttentionStruct(ctypes.Structure):
    """The C struct ``ShortAttention``."""

    _fields_ = (
        *((name, _ADDRESS) for name in ("query", "key", "value")),
        *(("queries", _TokensStruct), ("keys", _TokensStruct)),
        ("mask", _ADDRESS),
        *((name, _SIZE) for name in ("mask_row", "mask_head", "mask_query", "mask_key")),
        *((name, _NUMBER) for name in ("rows", "heads", "d_k", "d_v")),
        *((name, _NUMBER) for name in ("longest_queries", "longest_keys", "is_fp32", "threads")),
    )


def can_attend(
    qkv: Tensor,
    kv: Tensor | None,
    mask: Tensor | None,
    heads: int,
    d_k: int,
    packings: Packings = (None, None),
) -> bool:
    """
    Decide whether there are compiled functions for these tensors.

    Where there are none, functions of torch compute, or say what is wrong.
    """
    given = [one for one in (qkv, kv) if one is not None]
    if native_products() is None or qkv.dtype not in FLOATS or not all(map(is_plain, given)):
        return False
    if mask is not None and not (is_plain(mask) and mask.dtype == torch.bool):
        return False
    width, offered = heads * d_k, qkv.size(2) if kv is None else kv.size(2)
    values = offered - (2 if kv is None else 1) * width
    if values <= 0 or values % heads or (kv is not None and qkv.size(2) != width):
        return False
    rows = set()
    for one, packing in zip(given, packings, strict=False):
        if packing is not None and one.shape[:2] != (1, len(packing.places)):
            return False
        rows.add(one.size(0) if packing is None else packing.rows)
    return len(rows) == 1 and (kv is None or kv.dtype == qkv.dtype)


def native_short_attention(
    qkv: Float[Tensor, "batch queries width"],
    kv: Float[Tensor, "_ keys other"] | None,
    mask: Bool[Tensor, "_ _ _ _"] | None,
    heads: int,
    d_k: int,
    packings: Packings = (None, None),
) -> Float[Tensor, "batch queries context"]:
    """Compute the same as `heedful.model.cpu.attention.short_attention`; only if `can_attend`."""
    qkv = qkv.contiguous()
    kv = None if kv is None else kv.contiguous()
    found: Tensor = _NativeShortAttention.apply(qkv, kv, mask, heads, d_k, packings)
    return found


class _NativeShortAttention(torch.autograd.Function):
    """Attention that keeps nothing but its input for the backward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        qkv: Tensor,
        kv: Tensor | None,
        mask: Tensor | None,
        heads: int,
        d_k: int,
        packings: Packings,
    ) -> Tensor:
        ctx.save_for_backward(qkv, kv, mask)
        ctx.rest = heads, d_k, packings
        call = _NativeCall(qkv, kv, mask, heads, d_k, packings)
        context = qkv.new_empty(*qkv.shape[:2], heads * call.described.d_v)
        call.library.short_attention(call.address, call.memory.data_ptr(), context.data_ptr())
        return context

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        qkv, kv, mask = ctx.saved_tensors
        heads, d_k, packings = ctx.rest
        call, gradient = _NativeCall(qkv, kv, mask, heads, d_k, packings), gradient.contiguous()
        d_qkv, d_kv = torch.empty_like(qkv), None if kv is None else torch.empty_like(kv)
        call.library.short_attention_gradients(
            *(call.address, gradient.data_ptr(), call.memory.data_ptr()),
            *_addresses(d_qkv, d_kv, heads * d_k),
        )
        return d_qkv, d_kv, None, None, None, None


class _NativeCall:
    """What the C functions are told; `described` holds addresses, so its tensors are kept here."""

    def __init__(
        self,
        qkv: Tensor,
        kv: Tensor | None,
        mask: Tensor | None,
        heads: int,
        d_k: int,
        packings: Packings,
    ) -> None:
        library = native_products()
        assert library is not None  # `can_attend`
        self.library, width = library, heads * d_k
        queries = _Rows.of(qkv, packings[0])
        keys = queries if kv is None else _Rows.of(kv, packings[1])
        offered = qkv.size(2) - width if kv is None else kv.size(2)
        rows, d_v = len(queries.starts) - 1, (offered - width) // heads
        if mask is not None:
            mask = mask.expand(rows, heads, queries.longest, keys.longest)
        threads = torch.get_num_threads()
        self.described = _AttentionStruct(
            *_addresses(qkv, kv, width),
            *(queries.described, keys.described),
            *((None, 0, 0, 0, 0) if mask is None else (mask.data_ptr(), *mask.stride())),
            *(rows, heads, d_k, d_v, queries.longest, keys.longest),
            *(int(qkv.dtype == torch.float32), threads),
        )
        self.address = ctypes.byref(self.described)
        each = library.short_attention_memory(queries.longest, keys.longest, d_k, d_v)
        self.memory = torch.empty(each * threads, dtype=torch.float32, device="cpu")
        self._kept = queries, keys, mask


class _Rows(NamedTuple):
    """Where the tokens of each row are, packed or padded."""

    starts: Tensor
    places: Tensor
    longest: int
    apart: int

    @classmethod
    def of(cls, x: Tensor, packing: Packing | None) -> "_Rows":
        if packing is not None:
            return cls(packing.starts, packing.in_row, packing.time, x.size(2))
        rows, time, width = x.shape
        starts = torch.arange(rows + 1, device="cpu") * time
        return cls(starts, torch.arange(time, device="cpu").repeat(rows), time, width)

    @property
    def described(self) -> _TokensStruct:
        """The C struct."""
        return _TokensStruct(self.starts.data_ptr(), self.places.data_ptr(), self.apart)


def _addresses(qkv: Tensor, kv: Tensor | None, width: int) -> tuple[int, int, int]:
    """Where the first query, key and value are; each is `width` numbers wide, values excepted."""
    step, first = width * qkv.element_size(), qkv.data_ptr()
    key = first + step if kv is None else kv.data_ptr()
    return first, key, key + step
