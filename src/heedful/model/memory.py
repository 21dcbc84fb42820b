"""The encoded source, and what encoders and decoders of every family do with it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.model.lengths import RowLengths


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
    keys: Tensor | None = None
    """What queries of a ConvS2S decoder are compared with; None means the states."""
    extra: Any = None
    """What the decoder's input needs of the source (`DecoderInput`)."""


class DecoderFlops(NamedTuple):
    """Forward operations of a decoder, a multiply-add as two."""

    own: int
    """For its own positions, attention to the memory included."""
    memory: int = 0
    """For what it computes of the memory, once a sentence."""


@runtime_checkable
class DrawsWeights(Protocol):
    """A module that draws its own first weights (`heedful.model.initialise`)."""

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights."""
        ...


@runtime_checkable
class Initialised(DrawsWeights, Protocol):
    """A module that draws its own first weights, and those of the tables around it."""

    def initialise_table(self, weight: Tensor, generator: torch.Generator) -> None:
        """Draw a table of embeddings that it reads, or the output matrix behind it."""
        ...


@runtime_checkable
class HasWeightNorm(Protocol):
    """A module that may normalise its weights at each use (Salimans and Kingma 2016)."""

    def fold_weight_norm(self) -> None:
        """Keep the normalised weights alone, because they will not change any more."""
        ...


@runtime_checkable
class SourceEncoder(Protocol):
    """What an encoder of any family offers."""

    width: int
    """Width of its states."""
    positions_differ: bool = True
    """Whether its states differ from position to position."""

    def flops(self, source: RowLengths) -> int:
        """Count the operations of a forward pass, of padding only those that are computed."""
        ...

    def memory_lengths(self, source: RowLengths) -> RowLengths:
        """Return the lengths of its states."""
        return source

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

    width: int
    """Width of what meets the output matrix."""
    attends: bool = True
    """Whether it attends to the source."""
    attends_once: bool = False
    """Whether each step attends once, and its state has the weights as `attention`."""

    def flops(self, target: RowLengths, memory: RowLengths) -> DecoderFlops:
        """Count the operations of a forward pass, of padding only those that are computed."""
        ...

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


@runtime_checkable
class DecoderInput(Protocol):
    """What a part offers that adds to what a decoder reads; `read` equals `step` token by token."""

    def flops(self, memory: RowLengths) -> int:
        """Count the operations for the states of the source."""
        ...

    def remember(self, memory: Memory, source: Int[Tensor, "batch source"], padding: int) -> Memory:
        """Put what it needs of the source into `Memory.extra`."""
        ...

    def read(
        self,
        x: Float[Tensor, "batch target d_model"],
        memory: Memory,
        target_in: Int[Tensor, "batch target"],
    ) -> Float[Tensor, "batch target d_model"]:
        """Add to the embeddings of a known target."""
        ...

    def start(self, state: Any, memory: Memory) -> Any:
        """Wrap the state of a decoder before a search."""
        ...

    def step(
        self,
        x: Float[Tensor, "sentences width d_model"],
        state: Any,
        newest: Int[Tensor, "sentences width"],
    ) -> tuple[Float[Tensor, "sentences width d_model"], Any, Callable[[Any], Any]]:
        """Add to the embeddings of the newest tokens; unwrap the state, and say how to wrap it."""
        ...
