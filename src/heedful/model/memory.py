"""The encoded source, and what encoders and decoders of every family do with it."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Bool, Float
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


@runtime_checkable
class SourceEncoder(Protocol):
    """What an encoder of any family offers."""

    def encode(
        self,
        x: Float[Tensor, "batch time d_model"],
        mask: Bool[Tensor, "batch _ _ time"],
        weights: list[Tensor] | None = None,
    ) -> Memory:
        """Encode embedded tokens; append the attention weights of each layer, if there are any."""
        ...


@runtime_checkable
class TargetDecoder(Protocol):
    """What a decoder of any family offers; `decode` equals `start` and `step` token by token."""

    def decode(
        self,
        x: Float[Tensor, "batch time d_model"],
        memory: Memory,
        weights: tuple[list[Tensor], list[Tensor]] | None = None,
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time width"]:
        """Compute the states of a known target, and append attention weights to two lists."""
        ...

    def start(self, memory: Memory) -> Any:
        """Prepare a search; the state has `sentences`, `length` and `select`."""
        ...

    def step(
        self, x: Float[Tensor, "sentences hypotheses d_model"], state: Any
    ) -> tuple[Float[Tensor, "sentences hypotheses width"], Any]:
        """Process one more token of each hypothesis."""
        ...
