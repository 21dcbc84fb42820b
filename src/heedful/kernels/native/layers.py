"""
All layers of a stack in one call of ``steps.c``.

The plain equivalents are the modules of `heedful.model.layers`.
"""

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.kernels.native.product import FP32, NativeLinear, Product, native_products

_POINTER, _INT = ctypes.c_void_p, ctypes.c_int
# Number of rows that one thread computes at a time; with more rows, weights are read less often.
# docs/results/speed-bf16.md compares 256 with 64.
ROWS_OF_A_BLOCK = 256
# With fewer rows per thread, reading the weights takes most of the time, so threads share rows.
_WORTH = 16
NATIVE_ACTIVATIONS = ("relu", "silu", "gelu", "gelu_tanh")
"""Supported activations, in the order of their numbers in ``activations.h``."""
Norm = nn.LayerNorm | nn.RMSNorm


class _Norm(ctypes.Structure):
    _fields_ = (("gain", _POINTER), ("shift", _POINTER), ("epsilon", ctypes.c_float))


class _Layer(ctypes.Structure):
    _fields_ = (
        *(
            (name, Product)
            for name in (
                "qkv_proj",
                "out_proj",
                "query_proj",
                "cross_out_proj",
                "linear1",
                "linear2",
            )
        ),
        ("norms", _Norm * 3),
    )


class _Stack(ctypes.Structure):
    _fields_ = (
        ("layers", ctypes.POINTER(_Layer)),
        ("first", ctypes.POINTER(_Norm)),
        *((name, _INT) for name in ("count", "d_model", "heads", "d_k", "d_v", "kind", "levels")),
        ("activation", _INT),
    )


class _Attended(ctypes.Structure):
    _fields_ = (
        ("layers", ctypes.POINTER(_POINTER)),  # keys and values alternate
        ("mask_bias", _POINTER),
        *((name, _INT) for name in ("stride", "same", "slots", "filled")),
        ("distances", _POINTER),
        *((name, _INT) for name in ("reach", "is_step")),
        *((name, _POINTER) for name in ("cosines", "sines")),
        ("turn_apart", _INT),
    )


class _Work(ctypes.Structure):
    _fields_ = (
        ("own", _Attended),
        ("source", _Attended),
        ("states", _POINTER),
        ("normal", _POINTER),
        ("sentences", _INT),
        ("width", _INT),
    )


@dataclass(frozen=True)
class AttendedStates:
    """
    The keys and values that positions may attend to, in every layer.

    The keys and values of the newest positions are written to the last slots in use.
    """

    layers: Sequence[
        tuple[
            Float[Tensor, "sentences heads slots d_k"],
            Float[Tensor, "sentences heads slots d_v"],
        ]
    ]
    """
    Keys (sentences, heads, slots, d_k) and values (sentences, heads, slots, d_v).

    They are fp32 if the linear layers are in fp32, else bf16.
    """
    mask_bias: Float[Tensor, "sentences seen slots"]
    """Negative where attention is forbidden."""
    filled: int
    """Number of slots in use."""
    distances: Float[Tensor, "heads distances"] | None = None
    """Score bias by distance, key position minus query position; distance 0 is in the middle."""
    is_step: bool = False
    """Whether a key's position is its rank among unmasked slots; else it is the slot's index."""
    circle: tuple[Float[Tensor, "positions half"], Float[Tensor, "positions half"]] | None = None
    """
    Cosines and sines of the angles by which queries and keys are rotated (`Rotation.circle`).

    They have a row for each newest position, or one row for all of them.
    """

    def describe(self) -> _Attended:
        """Fill the C struct ``Attended`` of ``steps.c``."""
        addresses = [tensor.data_ptr() for layer in self.layers for tensor in layer]
        same = int(self.mask_bias.size(1) == 1)
        slots = self.layers[0][0].size(2)
        pointers = (_POINTER * len(addresses))(*addresses)
        stride = self.mask_bias.size(2)
        attended = _Attended(pointers, self.mask_bias.data_ptr(), stride, same, slots, self.filled)
        if self.distances is not None:
            attended.distances, attended.reach = (
                self.distances.data_ptr(),
                self.distances.size(1) // 2,
            )
            attended.is_step = self.is_step
        if self.circle is not None:
            attended.cosines, attended.sines = (part.data_ptr() for part in self.circle)
            rows, half = self.circle[0].shape
            attended.turn_apart = half if rows > 1 else 0
        return attended


class NativeLayers:
    """
    The layers of a stack, run by compiled functions.

    A call uses as many threads as torch does at that time. Several threads may call the same
    object. `dtype` is the type of keys and values.
    """

    def __init__(
        self,
        products: Sequence[Sequence[NativeLinear]],
        norms: Sequence[Norm],
        first: Norm | None,
        heads: int,
        d_k: int,
        d_v: int,
        activation: str = "relu",
    ) -> None:
        library = native_products()
        if library is None:
            raise RuntimeError("the compiled functions of steps.c are not available")
        self.library, self.pre = library, first is not None
        self.dtype = torch.float32 if products[0][0].kind == FP32 else torch.bfloat16
        self.kept_alive = [*products, *norms, first]
        norms_per_layer = len(norms) // len(products)
        self.layers = (_Layer * len(products))()
        for number, (layer, own) in enumerate(zip(self.layers, products, strict=True)):
            # an encoder layer has four linear layers, and a decoder layer has six
            layer.qkv_proj, layer.out_proj, *cross, layer.linear1, layer.linear2 = (
                projection.product for projection in own
            )
            if cross:
                layer.query_proj, layer.cross_out_proj = cross
            for place, norm in enumerate(
                norms[number * norms_per_layer : (number + 1) * norms_per_layer]
            ):
                layer.norms[place] = _describe(norm)
        self.first = None if first is None else _describe(first)
        self.stack = _Stack(
            self.layers,
            None if self.first is None else ctypes.pointer(self.first),
            len(products),
            products[0][0].inner,
            heads,
            d_k,
            d_v,
            products[0][0].kind,
            products[0][0].levels,
            NATIVE_ACTIVATIONS.index(activation),
        )
        self.memory = threading.local()

    def run(
        self,
        x: Float[Tensor, "sentences width d_model"],
        own: AttendedStates,
        source: AttendedStates | None = None,
    ) -> Float[Tensor, "sentences width d_model"]:
        """
        Run some positions of each sentence through all layers.

        Threads divide sentences or the outputs of products, but never a sum, so their number does
        not change results.
        """
        sentences, width = x.shape[:2]
        states = x.contiguous().clone()
        normal = torch.empty_like(states) if self.pre else states
        none = _Attended()
        work = _Work(
            own.describe(),
            none if source is None else source.describe(),
            states.data_ptr(),
            normal.data_ptr(),
            sentences,
            width,
        )
        threads = torch.get_num_threads()
        block = 0
        if threads == 1 or sentences * width >= _WORTH * threads:
            blocks = threads * max(1, round(sentences * width / (threads * ROWS_OF_A_BLOCK)))
            block = -(-sentences // blocks)
        stack, about = ctypes.byref(self.stack), ctypes.byref(work)
        needed = threads * self.library.memory_for(stack, about, block or sentences)
        self.library.run_layers(stack, about, block, threads, self._room(needed))
        return normal

    def _room(self, needed: int) -> int:
        """Return the address of a buffer that is reused, because new pages cause page faults."""
        room = getattr(self.memory, "room", None)
        if room is None or room.numel() < needed:
            self.memory.room = room = torch.empty(needed, dtype=torch.uint8)
        return int(room.data_ptr())


def log_probabilities(
    by: NativeLinear, states: Float[Tensor, "rows d_model"]
) -> Float[Tensor, "rows vocabulary"]:
    """Multiply states by the output matrix and take the log-softmax."""
    states = states.contiguous()
    out = torch.empty(states.size(0), by.outer)
    rounded, largest = by.room(states.size(0))
    by.library.log_probabilities(
        ctypes.byref(by.product),
        states.data_ptr(),
        states.size(0),
        by.levels,
        torch.get_num_threads(),
        rounded.data_ptr(),
        largest.data_ptr(),
        out.data_ptr(),
    )
    return out


def best_of_rows(
    scores: Float[Tensor, "rows width"], wanted: int
) -> tuple[Float[Tensor, "rows wanted"], Int[Tensor, "rows wanted"]] | None:
    """
    Find the largest numbers of each row.

    `wanted`: numbers per row, at most `width`. Returns the numbers, largest first, with their
    indices; None without compiled functions.

    The result equals that of `torch.topk`, which is slow on a CPU. Rows with too few finite numbers
    are filled with minus infinity at index 0.
    """
    library = native_products()
    if library is None:
        return None
    scores = scores.contiguous()
    rows, width = scores.shape
    best = torch.empty(rows, wanted)
    where = torch.empty(rows, wanted, dtype=torch.long)
    threads = torch.get_num_threads()
    library.best_of_rows(
        scores.data_ptr(), rows, width, wanted, threads, best.data_ptr(), where.data_ptr()
    )
    return best, where


def best_continuations(
    totals: Float[Tensor, "beams width"],
    scores: Float[Tensor, "beams width vocabulary"],
    wanted: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
    """
    Find each beam's continuations with the largest hypothesis total plus token score.

    `wanted`: continuations per beam. Returns sums, scores, hypotheses and tokens, each of shape
    (beams, wanted), best first; ties keep their order. None without compiled functions.
    """
    library = native_products()
    if library is None:
        return None
    scores, totals = scores.contiguous(), totals.contiguous()
    beams, width, vocabulary = scores.shape
    per_row = min(wanted, vocabulary)
    wanted = min(wanted, width * per_row)
    # the best tokens of each row, then the best continuations of each beam
    row_scores, sums, chosen = (
        torch.empty(size) for size in ((beams, width, per_row), (beams, wanted), (beams, wanted))
    )
    row_tokens, parents, tokens = (
        torch.empty(size, dtype=torch.long)
        for size in ((beams, width, per_row), (beams, wanted), (beams, wanted))
    )
    library.best_continuations(
        totals.data_ptr(),
        scores.data_ptr(),
        *(beams, width, vocabulary, per_row, wanted, torch.get_num_threads()),
        *(part.data_ptr() for part in (row_scores, row_tokens, sums, chosen, parents, tokens)),
    )
    return sums, chosen, parents, tokens


def _describe(norm: Norm) -> _Norm:
    """Fill the C struct of a norm; an RMS norm has no shift."""
    shift = norm.bias.data_ptr() if isinstance(norm, nn.LayerNorm) else None
    epsilon = torch.finfo(torch.float32).eps if norm.eps is None else norm.eps  # as torch does
    return _Norm(norm.weight.data_ptr(), shift, epsilon)
