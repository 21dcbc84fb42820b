"""The encoded source, as any encoder hands it to any decoder."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class FinalState:
    """Last states of one recurrent layer: h, and c of an LSTM, each of shape (batch, width)."""

    forward: tuple[Tensor, ...] | None
    """Of the direction that ends with the last token."""
    backward: tuple[Tensor, ...] | None
    """Of the direction that ends with the first token."""


@dataclass(frozen=True)
class Memory:
    """
    The encoded source with its mask.

    Notes
    -----
    The z of section 3.
    """

    states: Tensor
    """Output of the encoder, shape (batch, source, width)."""
    mask: Tensor
    """True at real source tokens, shape (batch, 1, 1, source)."""
    final: tuple[FinalState, ...] = ()
    """Last states of each layer of a recurrent encoder; empty for others."""
