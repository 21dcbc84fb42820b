"""
Groups of heads that share keys and values (Shazeer 2019, Ainslie et al. 2023).

::

    queries   0 1 2 3   4 5 6 7     8 heads in groups of 4
    keys      0         1           2 heads, of keys and of values

A search stores only the key and value heads. It treats all queries of a group as queries of one
head, so it copies no keys. Kernels for whole sequences need as many heads of keys as of queries, so
keys and values are repeated.
"""

from jaxtyping import Float
from torch import Tensor

from heedful.errors import SettingError


def check_groups(heads: int, kv_heads: int | None, score: str) -> int:
    """Return the number of key heads; refuse unequal groups, and scores other than dot products."""
    if kv_heads is None:
        return heads
    if heads % kv_heads:
        raise SettingError(
            f"`kv_heads` must divide heads={heads}, because each head of keys and values serves "
            f"the same number of query heads, but {kv_heads} does not."
        )
    if kv_heads != heads and score not in ("scaled", "unscaled"):
        raise SettingError(
            f"`score` must be scaled or unscaled if heads share keys, but got {score!r}."
        )
    return kv_heads


def repeat_heads(
    x: Float[Tensor, "batch keys width"], kv_heads: int, heads: int
) -> Float[Tensor, "batch keys wider"]:
    """Repeat keys or values, whose heads are concatenated, for each head of the queries."""
    if kv_heads == heads:
        return x
    return x.unflatten(-1, (kv_heads, -1)).repeat_interleave(heads // kv_heads, dim=-2).flatten(-2)


def group_heads(
    x: Float[Tensor, "batch heads queries width"], kv_heads: int
) -> Float[Tensor, "batch groups rows width"]:
    """Stack the queries of all heads of a group as the rows of one head."""
    return x if x.size(1) == kv_heads else x.unflatten(1, (kv_heads, -1)).flatten(2, 3)
