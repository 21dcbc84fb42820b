"""
Which positions attend to which, and where they are.

::

    mask                          True where a query may attend to a key, in padded rows
    query_packing, key_packing    where the real ones were, if padding was removed
                                  (`heedful.kernels.unpadding`)
    weights                       a list for the attention weights, if the caller wants them
    window                        which neighbours a query may attend to, if that is not in the mask
    real                          which queries are no padding, where that was not removed

The layers pass a layout on from the stack to `heedful.model.attention.attend` and never look into
it.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.kernels.api import Packing, use_cpu_kernel
from heedful.model.inputs import check_mask
from heedful.model.window import Window


@dataclass(frozen=True)
class Layout:
    """
    How the positions of one sequence attend to those of another, or of the same one.

    Notes
    -----
    Made once per batch by the stacks.
    """

    mask: Bool[Tensor, "_ _ _ _"] | None = None
    """
    True where the query may attend to the key, shape (batch, 1 or heads, 1 or queries, keys);
    everywhere if None.
    """
    query_packing: Packing | None = None
    key_packing: Packing | None = None
    """Positions of the real tokens if padding was removed; None for padded rows."""
    weights: list[Tensor] | None = None
    """Each attention appends its weights (batch, heads, queries, keys) here, unless None."""
    real: Bool[Tensor, "batch queries"] | None = None
    """True at real queries, for norms and networks; None if all are, or padding was removed."""
    window: Window | None = None
    """The neighbours that a query may attend to, if they are not in the mask, which is of keys."""

    def __post_init__(self) -> None:
        """Check the mask."""
        if self.mask is not None:
            check_mask("Layout", self.mask)

    @classmethod
    def of(cls, layout: Any) -> "Layout":
        """
        Make a layout of a bare mask.

        Parameters
        ----------
        layout : Tensor of bool, shape (batch, 1 or heads, 1 or queries, keys), Layout or None
            A mask over padded rows, a layout, or nothing.

        Returns
        -------
        Layout
            The layout itself, or one of padded rows.

        Notes
        -----
        So that blocks are called with plain tensors outside heedful. Raises `ArgumentError` for
        anything else.
        """
        if isinstance(layout, cls):
            return layout
        return cls(None if layout is None else check_mask("MultiHeadAttention", layout))

    @property
    def is_unpadded(self) -> bool:
        """
        Tell whether padding was removed from queries or keys.

        Returns
        -------
        bool
            False if all rows are padded.

        Notes
        -----
        Then only the processor's kernel can attend.
        """
        return self.query_packing is not None or self.key_packing is not None


EVERYWHERE = Layout()
"""Every query attends to every key."""


def unpad(
    x: Float[Tensor, "batch time d_model"], real: Bool[Tensor, "batch time"] | None, keys: int
) -> tuple[Float[Tensor, "_ tokens d_model"], Packing | None]:
    """
    Remove the padding of a sequence where that is faster.

    Parameters
    ----------
    x : Tensor of float, shape (batch, time, d_model)
        Padded rows.
    real : Tensor of bool, shape (batch, time), or None
        True at real tokens; None keeps the rows, as attention weights need them.
    keys : int
        The most keys that a query of `x` attends to.

    Returns
    -------
    x : Tensor of float, shape (1, tokens, d_model) or (batch, time, d_model)
        The real tokens one after the other, or `x` itself.
    packing : Packing or None
        Where they were; None if the rows stay.

    Notes
    -----
    Only attention needs to know rows, so a processor computes everything else for the real tokens
    alone: with oneDNN, at most 256 keys, and padding of more than 3 % of the positions. Results are
    equal (`heedful.kernels.unpadding`).
    """
    packing = None if real is None or not use_cpu_kernel(x, keys) else Packing.of(real)
    return (x, None) if packing is None else (packing.pack(x), packing)


def pad(
    x: Float[Tensor, "_ tokens d_model"], packing: Packing | None
) -> Float[Tensor, "batch time d_model"]:
    """
    Put tokens back into padded rows.

    Parameters
    ----------
    x : Tensor of float, shape (1, tokens, d_model) or (batch, time, d_model)
        States, as `unpad` left them.
    packing : Packing or None
        The second result of `unpad`.

    Returns
    -------
    Tensor of float, shape (batch, time, d_model)
        Padded rows.

    Notes
    -----
    Padding that was removed comes back as zeros.
    """
    return x if packing is None else packing.unpack(x)


def padding_mask(ids: Int[Tensor, "batch time"], padding: int) -> Bool[Tensor, "batch 1 1 time"]:
    """
    Build a mask that hides padding from every query.

    Parameters
    ----------
    ids : Tensor of int, shape (batch, time)
        Token ids.
    padding : int
        The padding id.

    Returns
    -------
    Tensor of bool, shape (batch, 1, 1, time)
        True at real tokens.

    Notes
    -----
    A row needs at least one real token: a softmax over nothing is NaN.
    """
    return (ids != padding)[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Bool[Tensor, "1 1 time time"]:
    """
    Build a mask that lets each position attend to itself and earlier positions.

    Parameters
    ----------
    length : int
        Number of positions.
    device : torch.device, optional
        Device of the mask.

    Returns
    -------
    Tensor of bool, shape (1, 1, length, length)
        True on and below the diagonal.

    Notes
    -----
    Section 3.2.3: no information flows leftward in the decoder. Padding stands at the end of a row,
    so real positions never attend to it and no further mask is needed.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]
