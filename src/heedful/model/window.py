"""
Self-attention restricted to neighbors (section 4 of the paper).

::

    r = 3, encoder         r = 3, decoder         blocks of 4: the queries of the second block,
    x x . . . .            x . . . . .            and the keys that they can see
    x x x . . .            x x . . . .
    . x x x . .            x x x . . .            . . . x x x . . . .
    . . x x x .            . x x x . .            . . . . x x x . . .
    . . . x x x            . . x x x .            . . . . . x x x . .
    . . . . x x            . . . x x x            . . . . . . x x x .

For short sequences the window is a band in the mask, which all kernels support. Long sequences are
cut into blocks of queries, each with its own copy of the keys and values around it. So time and
memory grow with the window times the length, not with the square of the length.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.errors import SettingError
from heedful.kernels.api import SHORT, join, split

# With fewer queries per block, copying keys and values costs more time than the blocks save.
_LEAST = 32
# Blocks are faster for sequences longer than this many times the keys of a block (`python -m
# benchmarks.window`).
_PAYS = 2


class Window(NamedTuple):
    """The numbers of earlier and later neighbors to which a position attends."""

    before: int
    after: int

    @classmethod
    def around(cls, r: int | None) -> "Window | None":
        """Make an encoder's window: r // 2 positions before each position, and r // 2 after."""
        return None if r is None else cls(r // 2, r // 2)

    @classmethod
    def before_and_at(cls, r: int | None) -> "Window | None":
        """Make the window of a decoder: r positions, which end with the position itself."""
        return None if r is None else cls(r - 1, 0)

    @property
    def width(self) -> int:
        """Number of keys of one query."""
        return self.before + 1 + self.after

    @property
    def block(self) -> int:
        """Number of queries of a block."""
        return max(_LEAST, self.before + self.after)

    @property
    def block_keys(self) -> int:
        """Number of keys that the queries of a block see."""
        return self.before + self.block + self.after

    def mask(self, length: int, device: torch.device | None = None) -> Bool[Tensor, "time time"]:
        """Compute which keys are in the window of each query."""
        places = torch.arange(length, device=device)
        return self.contains(places - places.unsqueeze(1))

    def is_cut(self, length: Any) -> Any:
        """Return whether sequences of this length are cut into blocks."""
        return length > max(SHORT, _PAYS * self.block_keys)

    def contains(self, distance: Tensor) -> Tensor:
        """Return whether queries see keys at these distances, key position minus query position."""
        return (distance >= -self.before) & (distance <= self.after)


def check_window(window: int | None, is_causal: bool) -> None:
    """Refuse a decoder's window without a causal mask, because the window hides later positions."""
    if window is not None and not is_causal:
        raise SettingError(
            "`causal_mask` must be true with a `window`, because a decoder's window hides later "
            "positions, but got false; leave one of them out."
        )


def restrict(
    mask: Bool[Tensor, "batch heads queries keys"] | None,
    window: Window,
    length: int,
    dense: bool,
    device: torch.device | None = None,
) -> tuple[Tensor | None, Window | None]:
    """
    Restrict self-attention to a window: in blocks if possible and faster, else with the mask.

    `mask`: true where a query may attend to the key; everywhere if None. `dense`: always use the
    mask, so that attention weights can be recorded. Returns the mask, and the window if it is not
    in the mask.

    Every position sees itself, even padding, because padding far from a token would otherwise see
    no position.
    """
    of_keys = mask is None or mask.size(1) == mask.size(2) == 1
    if of_keys and not dense and window.is_cut(length):
        return mask, window
    band = window.mask(length, device if mask is None else mask.device)[None, None]
    if mask is None:
        return band, None
    return band & mask | torch.eye(length, dtype=torch.bool, device=mask.device), None


def close_oldest(mask_bias: Float[Tensor, "sentences width slots"], width: int) -> None:
    """Mask the oldest cache slot of each hypothesis that attends to more than `width` slots."""
    is_open = mask_bias == 0
    first = is_open.int().argmax(dim=2, keepdim=True)  # (sentences, width, 1)
    too_many = is_open.sum(dim=2, keepdim=True) > width
    closed = torch.zeros_like(mask_bias[..., :1]).masked_fill_(too_many, float("-inf"))
    mask_bias.scatter_(2, first, closed)


@dataclass(frozen=True)
class Blocks:
    """Sequences cut into blocks of queries; each block is a row of a batch."""

    queries: Float[Tensor, "blocks queries width"]
    keys: Float[Tensor, "blocks keys width"]
    values: Float[Tensor, "blocks keys width_v"]
    """Keys and values around each block."""
    mask: Bool[Tensor, "blocks 1 queries keys"]
    """True where a query sees the key."""
    rows: int
    length: int
    """Number of sequences, and number of positions of each sequence."""

    @classmethod
    def of(
        cls,
        queries: Float[Tensor, "rows time width"],
        keys: Float[Tensor, "rows time width"],
        values: Float[Tensor, "rows time width_v"],
        mask: Bool[Tensor, "_ 1 1 keys"] | None,
        window: Window,
    ) -> "Blocks":
        """Cut self-attention into blocks. `mask`: true at keys that may be seen; all if None."""
        rows, length, _ = queries.shape
        count = -(-length // window.block)
        filling = count * window.block - length
        around = (window.before, window.after + filling)
        filled = nn.functional.pad(queries, (0, 0, 0, filling))
        kv = nn.functional.pad(join(keys, values), (0, 0, *around))
        kv = kv.unfold(1, window.block_keys, window.block)  # (rows, count, width, keys)
        real = queries.new_ones(1, length, dtype=torch.bool) if mask is None else mask[:, 0, 0]
        real = nn.functional.pad(real, around)
        real = real.unfold(1, window.block_keys, window.block)  # (rows or 1, count, keys)
        first = torch.arange(window.block, device=queries.device).unsqueeze(1) + window.before
        distance = torch.arange(window.block_keys, device=queries.device) - first  # key minus query
        seen = window.contains(distance) & real.unsqueeze(2) | (distance == 0)
        seen = seen.expand(rows, -1, -1, -1).flatten(0, 1).unsqueeze(1)
        around_keys, around_values = split(
            kv.flatten(0, 1).transpose(1, 2), (keys.size(2), values.size(2))
        )
        by_block = filled.view(rows * count, window.block, -1)
        return cls(by_block, around_keys, around_values, seen, rows, length)

    @property
    def states(self) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values."""
        return self.queries, self.keys, self.values

    def join(
        self, context: Float[Tensor, "blocks queries width"]
    ) -> Float[Tensor, "rows time width"]:
        """Join the contexts of all blocks into sequences again."""
        return context.reshape(self.rows, -1, context.size(2))[:, : self.length]
