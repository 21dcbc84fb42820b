"""The interfaces of encoders and decoders, which exchange `Memory`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor

from heedful.model.flops import DecoderFlops, RowLengths

States = Float[Tensor, "batch time d_model"]
SourceMask = Bool[Tensor, "batch _ _ time"]
WeightLists = tuple[list[Tensor], list[Tensor]] | None
"""Lists to which the weights of self-attention and cross-attention are appended on request."""


@dataclass(frozen=True)
class FinalState:
    """Last states of one recurrent layer: h, and c of an LSTM, each of shape (batch, width)."""

    forward: tuple[Tensor, ...] | None
    """States of the direction that ends with the last token."""
    backward: tuple[Tensor, ...] | None
    """States of the direction that ends with the first token."""


@dataclass(frozen=True)
class Memory:
    """The encoded source (z in section 3) with its mask."""

    states: Tensor
    """Output of the encoder, shape (batch, source, width)."""
    mask: Tensor
    """True at real source tokens, shape (batch, 1, 1, source)."""
    final: tuple[FinalState, ...] = ()
    """Last states of each layer of a recurrent encoder; empty for other encoders."""
    keys: Tensor | None = None
    """The keys for a ConvS2S decoder's queries; the states if None."""
    extra: Any = None
    """Data from the source that the decoder's input needs (`DecoderInput`)."""


@runtime_checkable
class SourceEncoder(Protocol):
    """The interface of an encoder of any family."""

    width: int
    """Width of the encoder's states."""
    positions_differ: bool = True
    """Whether the encoder's states differ from position to position."""
    memory_lengths: Callable[[RowLengths], RowLengths] | None = None
    """Maps source lengths to numbers of states; None if they are equal."""

    def flops(self, source: RowLengths) -> int:
        """Count forward operations, two per multiply-add; padding counts only if it is computed."""

    def encode(self, x: States, mask: SourceMask, weights: list[Tensor] | None = None) -> Memory:
        """
        Encode embedded tokens; padding must not change the states of real tokens.

        Parameters
        ----------
        x : Tensor
            Embeddings; with positions if the family adds them.
        mask : Tensor
            True at real tokens.
        weights : list, optional
            A list to which the attention weights of each layer are appended, if the encoder has
            attention.

        Returns
        -------
        Memory
            The states and the mask.
        """


@runtime_checkable
class TargetDecoder(Protocol):
    """The interface of a decoder of any family; `decode` computes the same states as `step`."""

    width: int
    """Width of the output layer's input."""
    attends: bool = True
    """Whether the decoder attends to the source."""
    attends_once: bool = False
    """Whether a step attends to the source only once, with weights in the state's `attention`."""

    def flops(self, target: RowLengths, memory: RowLengths) -> DecoderFlops:
        """Count forward operations, two per multiply-add; padding counts only if it is computed."""

    def decode(
        self,
        x: States,
        memory: Memory,
        weights: WeightLists = None,
        real: Bool[Tensor, "batch time"] | None = None,
    ) -> Float[Tensor, "batch time width"]:
        """
        Compute the states of a given target; a position may read only itself and earlier positions.

        Parameters
        ----------
        x : Tensor
            Embeddings of the target, which begins with the start symbol.
        memory : Memory
            The encoded source.
        weights : tuple of two lists, optional
            Lists to which the weights of self-attention and cross-attention are appended, by layer.
        real : Tensor, optional
            True at real tokens; everywhere if None.

        Returns
        -------
        Tensor
            The input of the output layer.
        """

    def start(self, memory: Memory) -> Any:
        """Start a search; return a `DecodingState` that also has `sentences` and `length`."""

    def step(
        self, x: Float[Tensor, "sentences hypotheses d_model"], state: Any
    ) -> tuple[Float[Tensor, "sentences hypotheses width"], Any]:
        """
        Process one more token of each hypothesis, as `decode` does at the newest positions.

        Parameters
        ----------
        x : Tensor
            Embeddings of the newest tokens.
        state : object
            The state from `start` or the previous step.

        Returns
        -------
        states : Tensor
            The input of the output layer.
        state : object
            The state for the next step.
        """
