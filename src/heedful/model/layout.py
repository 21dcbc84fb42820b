"""
Layouts: to which positions each position may attend, and where the real tokens are.

::

    mask                          True where a query may attend to a key, in padded rows
    query_packing, key_packing    original positions of real tokens, if padding was removed
                                  (`heedful.kernels.attention`)
    weights                       a list for the attention weights, if the caller requests them
    window                        the neighbors to which a query may attend, if not in the mask
    real                          which queries are not padding; some padding may be kept
    bias                          a bias of the scores, which includes the mask

Each stack creates its layouts, and the layers pass them on to `heedful.model.attention.attend`.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.errors import ArgumentError
from heedful.kernels.api import PackedRows, Packing, use_cpu_kernel
from heedful.model.relations import Places
from heedful.model.window import Window


def check_states(owner: str, width: int, least_axes: int = 1, **states: Any) -> None:
    """Refuse values other than float tensors of size `width` on the last axis."""
    for name, x in states.items():
        is_states = isinstance(x, Tensor) and x.dim() >= least_axes and x.is_floating_point()
        if not is_states or x.size(-1) != width:
            form = "(batch, time, d_model)" if least_axes == 3 else "(..., d_model)"
            wanted = f"floats of shape {form} with d_model={width}"
            raise not_a_tensor(f"`{name}` of {owner}", wanted, x)


def check_heads(query: Any, key: Any, value: Any, mask: Any) -> None:
    """Refuse arguments of `scaled_dot_product_attention` that cannot be multiplied."""
    owner = "scaled_dot_product_attention"
    for name, x in (("query", query), ("key", key), ("value", value)):
        if not isinstance(x, Tensor) or x.dim() < 2 or not x.is_floating_point():
            wanted = "floats of shape (batch, heads, time, width)"
            raise not_a_tensor(f"`{name}` of {owner}", wanted, x)
    for what, axis, pair in (
        ("`query` and `key`", -1, (query, key)),
        ("`key` and `value`", -2, (key, value)),
    ):
        if pair[0].size(axis) != pair[1].size(axis):
            raise ArgumentError(
                f"{what} of {owner} must have the same size on axis {axis}, but their shapes are "
                f"{tuple(pair[0].shape)} and {tuple(pair[1].shape)}."
            )
    is_cast = torch.is_autocast_enabled(query.device.type)
    if not is_cast and not query.dtype == key.dtype == value.dtype:
        types = ", ".join(str(x.dtype).removeprefix("torch.") for x in (query, key, value))
        raise ArgumentError(f"the tensors of {owner} must have one dtype, but have {types}.")
    if mask is not None:
        scores = (*_broadcast(query, key), query.size(-2), key.size(-2))
        fits = isinstance(mask, Tensor) and mask.dtype is torch.bool and mask.dim() <= len(scores)
        axes = zip(reversed(mask.shape), reversed(scores), strict=False) if fits else ()
        if not fits or any(size not in (1, of_scores) for size, of_scores in axes):
            wanted = f"booleans that can be broadcast to the scores, whose shape is {scores}"
            raise not_a_tensor(f"`mask` of {owner}", wanted, mask)


def _broadcast(query: Tensor, key: Tensor) -> tuple[int, ...]:
    """Return the common size of all axes before the last two."""
    try:
        return tuple(torch.broadcast_shapes(query.shape[:-2], key.shape[:-2]))
    except RuntimeError:
        raise ArgumentError(
            "`query` and `key` of scaled_dot_product_attention must have the same batch size and "
            f"number of heads, but their shapes are {tuple(query.shape)} and {tuple(key.shape)}."
        ) from None


def check_mask(owner: str, mask: Any, rows: int = 1) -> Tensor:
    """Return the mask of all rows; refuse values other than a boolean tensor with four axes."""
    if not isinstance(mask, Tensor) or mask.dtype is not torch.bool or mask.dim() != 4:
        wanted = "booleans of shape (batch, heads or 1, queries or 1, keys), true where a query"
        raise not_a_tensor(f"the mask of {owner}", f"{wanted} may attend to a key", mask)
    return mask.expand(rows, -1, -1, -1) if mask.size(0) == 1 else mask


def check_ids(owner: str, **ids: Any) -> None:
    """Refuse values other than integer tensors with two axes and at least one id."""
    for name, x in ids.items():
        fits = isinstance(x, Tensor) and x.dim() == 2 and x.dtype in (torch.int64, torch.int32)
        if not fits or not x.numel():
            wanted = "token ids (int64 or int32) of shape (batch, time), both at least 1"
            raise not_a_tensor(f"`{name}` of {owner}", wanted, x)


def not_a_tensor(what: str, wanted: str, value: Any) -> ArgumentError:
    """Build the error for a wrong tensor, with a description of the required tensor."""
    received = f"a {type(value).__name__}"
    if isinstance(value, Tensor):
        received = f"one of {str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
    return ArgumentError(f"{what} must be a tensor of {wanted}, but got {received}.")


@dataclass(frozen=True)
class Layout:
    """Which positions may attend to which; each stack creates layouts for each batch."""

    mask: Bool[Tensor, "_ _ _ _"] | None = None
    """
    True where the query may attend to the key, shape (batch, 1 or heads, 1 or queries, keys);
    everywhere if None.
    """
    query_packing: Packing | None = None
    key_packing: Packing | None = None
    """Positions of the real tokens if padding was removed; None for padded rows."""
    weights: list[Tensor] | None = None
    """Each attention layer appends its weights (batch, heads, queries, keys) here, unless None."""
    real: Bool[Tensor, "_ queries"] | None = None
    """True at real queries, for norms and networks; None if all are real."""
    window: Window | None = None
    """The neighbors that a query may attend to, if the mask does not include the window."""
    bias: Float[Tensor, "_ heads _ _"] | None = None
    """
    Bias of the scores in padded rows, (batch, heads, queries, keys); minus infinity where the mask
    is false.
    """
    rows: tuple[PackedRows, PackedRows] | None = None
    """Starts of the sentences of queries and of keys, if they are packed on a GPU."""
    numbers: Int[Tensor, " tokens"] | None = None
    """Positions of packed queries in their sentences."""

    def __post_init__(self) -> None:
        """Check the mask."""
        if self.mask is not None:
            check_mask("Layout", self.mask)

    @classmethod
    def of(cls, layout: Any) -> "Layout":
        """
        Make a layout from a mask, so that layers can be called with plain tensors.

        The mask has the shape (batch, 1 or heads, 1 or queries, keys), with padded rows. A layout
        is returned unchanged; None gives a layout without a mask. Raises `ArgumentError` for any
        other value.
        """
        if isinstance(layout, cls):
            return layout
        return cls(None if layout is None else check_mask("MultiHeadAttention", layout))

    @property
    def is_unpadded(self) -> bool:
        """Whether padding was removed, so that attention needs a kernel for unpadded tokens."""
        return any(part is not None for part in (self.query_packing, self.key_packing, self.rows))

    def places(self, queries: Float[Tensor, "_ time _"]) -> Places:
        """Find the positions of queries in their sentences; positions of padding do not matter."""
        if self.query_packing is not None:
            return Places(self.query_packing.in_row.unsqueeze(0), self.query_packing.time)
        if self.rows is not None and self.numbers is not None:
            return Places(self.numbers.unsqueeze(0), self.rows[0].longest)
        return Places.in_order(queries.size(1), queries.device)


EVERYWHERE = Layout()
"""Every query attends to every key."""


def unpad(
    x: Float[Tensor, "batch time d_model"], real: Bool[Tensor, "batch time"] | None, keys: int
) -> tuple[Float[Tensor, "_ tokens d_model"], Packing | None]:
    """
    Remove the padding of a sequence if that is faster; return the positions of the tokens.

    Only attention needs one row per sentence, so a CPU computes all other layers only for real
    tokens. Removal needs oneDNN, at most 256 keys, and padding of at least 3% of the positions.
    Results are equal with and without padding (`heedful.kernels.attention`). `real`: true at real
    tokens; None keeps the padded rows, which attention weights need. `keys`: the largest number of
    keys that a query of `x` attends to.
    """
    packing = None if real is None or not use_cpu_kernel(x, keys) else Packing.of(real)
    return (x, None) if packing is None else (packing.pack(x), packing)


def real_positions(
    real: Bool[Tensor, "batch time"] | None, packing: Packing | None
) -> Bool[Tensor, "_ positions"] | None:
    """Return which positions are real after `unpad`, which may keep padding; None if all are."""
    if real is None or packing is None:
        return real
    is_real = real.reshape(1, -1).index_select(1, packing.places)  # (1, tokens)
    return None if bool(is_real.all()) else is_real


def pad(
    x: Float[Tensor, "_ tokens d_model"], packing: Packing | None
) -> Float[Tensor, "batch time d_model"]:
    """Put tokens back into padded rows; padding that was removed becomes zeros."""
    return x if packing is None else packing.unpack(x)


def padding_mask(ids: Int[Tensor, "batch time"], padding: int) -> Bool[Tensor, "batch 1 1 time"]:
    """Build a mask that is true at real tokens; a row without tokens gives NaN in a softmax."""
    return (ids != padding)[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Bool[Tensor, "1 1 time time"]:
    """
    Build a mask that lets each position attend to itself and earlier positions.

    Section 3.2.3: no information flows leftward in the decoder. Padding is at the end of a row, so
    real positions never attend to padding and no further mask is needed.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]


def split_heads(
    x: Float[Tensor, "batch time width"], heads: int
) -> Float[Tensor, "batch heads time d"]:
    """Split the last axis into heads, as a view; `merge_heads` is the inverse."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(
    context: Float[Tensor, "batch heads time d"],
) -> Float[Tensor, "batch time width"]:
    """Concatenate the heads: Concat of section 3.2.2."""
    return context.transpose(1, 2).flatten(2)
