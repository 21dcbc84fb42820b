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


class Projections(NamedTuple):
    """
    Queries, keys and values of all heads, side by side as the products left them.

    Notes
    -----
    The processor's kernel reads them in place and writes their gradients side by side; cutting them
    apart first would cost one more copy.
    """

    qkv: Float[Tensor, "batch queries width"]
    """Queries, then in self-attention keys and values, on the last axis; else queries alone."""
    kv: Float[Tensor, "other keys width2"] | None
    """
    Keys, then values, on the last axis; None in self-attention, where `qkv` holds all three. One
    row (1, tokens) if padding was removed.
    """
    heads: int
    """Number of heads."""
    d_k: int
    """Width of a head's queries and keys."""

    def split(self) -> tuple[Float[Tensor, "batch heads queries d_k"], KeyValue]:
        """
        Split queries, keys and values into heads.

        Returns
        -------
        query : Tensor of float, shape (batch, heads, queries, d_k)
            Queries of every head.
        key_value : KeyValue
            Keys and values of every head.

        Notes
        -----
        Views, not copies.
        """
        width = self.heads * self.d_k
        if self.kv is None:
            rest = self.qkv.size(2) - 2 * width
            query, keys, values = self.qkv.split([width, width, rest], dim=-1)
        else:
            query, rest = self.qkv, self.kv.size(2) - width
            keys, values = self.kv.split([width, rest], dim=-1)
        query, keys, values = (split_heads(x, self.heads) for x in (query, keys, values))
        return query, KeyValue(keys, values)
