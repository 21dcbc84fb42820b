"""Queries, keys and values of all heads, side by side or split."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor


def split_heads(
    x: Float[Tensor, "batch time width"], heads: int
) -> Float[Tensor, "batch heads time d"]:
    """
    Split the last axis into heads.

    Parameters
    ----------
    x : Tensor of float, shape (batch, time, heads * d)
        The heads side by side.
    heads : int
        Number of heads.

    Returns
    -------
    Tensor of float, shape (batch, heads, time, d)
        A view of `x`.

    Notes
    -----
    Undone by `merge_heads`.
    """
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(
    context: Float[Tensor, "batch heads time d"],
) -> Float[Tensor, "batch time width"]:
    """
    Concatenate the heads.

    Parameters
    ----------
    context : Tensor of float, shape (batch, heads, time, d)
        One context per head.

    Returns
    -------
    Tensor of float, shape (batch, time, heads * d)
        The heads side by side.

    Notes
    -----
    Section 3.2.2, Concat.
    """
    return context.transpose(1, 2).flatten(2)


class KeyValue(NamedTuple):
    """
    Keys and values of a sequence, split into heads.

    Notes
    -----
    Computed once per token and read at every later step of a search.
    """

    keys: Float[Tensor, "batch heads keys d_k"]
    """Projected keys."""
    values: Float[Tensor, "batch heads keys d_v"]
    """Projected values."""

    def select(self, rows: Tensor) -> "KeyValue":
        """
        Select rows of the batch, in any order and number.

        Parameters
        ----------
        rows : Tensor of int, shape (rows,)
            Index of the old row that each new row continues.

        Returns
        -------
        KeyValue
            The chosen rows.

        Notes
        -----
        Finished sentences leave the batch of a search this way.
        """
        return KeyValue(self.keys.index_select(0, rows), self.values.index_select(0, rows))
