"""
The interface of a model for training and search: `Seq2Seq`.

The interfaces of encoders and decoders are in `heedful.model.halves`, and the interfaces of parts
of layers are in `heedful.model.parts`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.model.embedding import OutputLayer
from heedful.model.flops import RowLengths
from heedful.model.halves import Memory


class DecoderInput:
    """The input of a decoder: the embeddings of its tokens, and the terms that a task adds."""

    # `read` must give the same results as `step`, token by token

    def flops(self, memory: RowLengths) -> int:
        """Count the operations on the states of the source."""
        del memory
        return 0

    def remember(self, memory: Memory, source: Int[Tensor, "batch source"], padding: int) -> Memory:
        """Store in `Memory.extra` the source data that the decoder's input needs."""
        del source, padding
        return memory

    def read(
        self,
        x: Float[Tensor, "batch target d_model"],
        memory: Memory,
        target_in: Int[Tensor, "batch target"],
    ) -> Float[Tensor, "batch target d_model"]:
        """Add the task's terms to the embeddings of a given target."""
        del memory, target_in
        return x

    def start(self, state: Any, memory: Memory) -> Any:
        """Wrap the state of a decoder before a search."""
        del memory
        return state

    def step(
        self,
        x: Float[Tensor, "sentences width d_model"],
        state: Any,
        newest: Int[Tensor, "sentences width"],
    ) -> tuple[Float[Tensor, "sentences width d_model"], Any, Callable[[Any], Any]]:
        """Return embeddings plus task terms, the decoder's state, and a wrapper for new states."""
        del newest
        return x, state, lambda inner: inner


@runtime_checkable
class DecodingState(Protocol):
    """
    The state of a decoder between two steps.

    Rows are hypotheses, ordered by sentence; all sentences have the same number of hypotheses.
    Tensors of the source are stored once per sentence, so they are neither copied nor reordered
    with the hypotheses.
    """

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "DecodingState":
        """
        Select rows after each step of a search; rows may be repeated, dropped and reordered.

        Parameters
        ----------
        rows : Tensor
            Index of the old row that each new row continues.
        sentences : Tensor, optional
            Indices of the sentences that stay; all if None.

        Returns
        -------
        DecodingState
            The state of the chosen rows.
        """


class Seq2Seq(nn.Module, ABC):
    """
    The interface of a model that maps one sequence to another.

    Parameters
    ----------
    padding : int
        The padding id.
    start_token : int
        The id that precedes the first target token.
    end_token : int
        The id that ends a sequence.

    Notes
    -----
    All tensors are batch-first. `states` and `step` return hidden states, not logits, so that the
    loss can compute the logits of a few rows at a time. Calling the model returns all logits at
    once.
    """

    output: OutputLayer
    """Maps states to logits. The loss computes logits in chunks from the weight and bias."""

    def __init__(self, padding: int, start_token: int, end_token: int) -> None:
        super().__init__()
        self.padding, self.start_token, self.end_token = padding, start_token, end_token

    @abstractmethod
    def encode(self, source: Int[Tensor, "batch source"]) -> Any:
        """Encode padded ids once per batch; the result is the input of `start`."""

    def forward(
        self, source: Int[Tensor, "batch source"], target_in: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target vocabulary"]:
        """Compute all logits for a target that is shifted right by one (teacher forcing)."""
        return self.project(self.states(source, target_in))

    @abstractmethod
    def states(
        self, source: Int[Tensor, "batch source"], target_in: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target d_model"]:
        """
        Compute all decoder states for a given target, as `start` and one `step` per token do.

        Parameters
        ----------
        source : Tensor
            Padded token ids.
        target_in : Tensor
            The target, shifted right by one: it begins with the start token.

        Returns
        -------
        Tensor
            The state at position i predicts target token i.
        """

    def forward_flops(self, source: RowLengths, target: RowLengths, hypotheses: int = 1) -> int:
        """
        Count the operations of a forward pass; a multiply-add counts as two.

        Parameters
        ----------
        source, target : RowLengths
            Lengths of the rows of the batch.
        hypotheses : int, default 1
            Number of targets of these lengths that a search computes for each source.

        Returns
        -------
        int
            Operations of all matrix multiplications, including masked pairs and computed padding;
            the output layer is counted only for real tokens. The default is 0, which means unknown.
        """
        del source, target, hypotheses
        return 0

    def penalty(self) -> Float[Tensor, ""] | None:
        """
        Return the penalty that the last call of `states` adds to the training loss.

        Returns
        -------
        Tensor or None
            A loss per target token, with its gradients. The default is None, which means no
            penalty.

        Notes
        -----
        Training calls this method once after each call of `states`. Each micro-batch has its own
        penalty, weighted by its number of real target tokens; perplexity and validation exclude the
        penalty.
        """
        total = None
        for part in self._of_parts("penalty"):
            if part.penalty is not None:
                total = part.penalty if total is None else total + part.penalty
                part.penalty = None  # the penalty belongs to one pass
        return total

    def log_figures(self) -> dict[str, float]:
        """Return values of the model for a line of the training log, by name."""
        parts, figures = self._of_parts("log_figures"), dict[str, float]()
        for kind in dict.fromkeys(map(type, parts)):
            of_kind: list[Any] = [part for part in parts if type(part) is kind]
            figures |= of_kind[0].log_figures(of_kind)
        return figures

    def _of_parts(self, name: str) -> list[Any]:
        """List the submodules with a penalty or values to log (`heedful.model.parts.Network`)."""
        return [part for part in self.modules() if part is not self and hasattr(part, name)]

    @abstractmethod
    def start(self, memory: Any) -> DecodingState:
        """Start a search with one hypothesis per sentence; compute what needs only the source."""

    @abstractmethod
    def step(
        self, state: Any, tokens: Int[Tensor, " rows"]
    ) -> tuple[Float[Tensor, "rows d_model"], Any]:
        """
        Process one more token per hypothesis; all sentences have the same number of hypotheses.

        Parameters
        ----------
        state : DecodingState
            The state returned by `start` or the last `step`.
        tokens : Tensor
            The newest token of each hypothesis; the start token in the first step.

        Returns
        -------
        states : Tensor
            States that predict the next token.
        state : DecodingState
            The state for the next call.
        """

    def project(
        self, states: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocabulary"]:
        """Compute logits over the whole target vocabulary; training computes them in chunks."""
        return self.output(states)

    def log_probabilities(
        self, states: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocabulary"]:
        """Compute natural log-probabilities of the next token; the softmax is in fp32."""
        return self.output.log_probabilities(states)

    @property
    def device(self) -> torch.device:
        """Device of all weights."""
        return self.output.weight.device


_BACKWARD = 2  # matrix multiplications in the backward pass for each one in the forward pass


def training_flops(model: Seq2Seq, source: RowLengths, target: RowLengths) -> int:
    """Count the operations of the forward and backward passes of a batch."""
    return (1 + _BACKWARD) * model.forward_flops(source, target)


def search_flops(
    model: Seq2Seq, source_lengths: Sequence[int], output_lengths: Sequence[int], beam: int = 1
) -> int:
    """
    Count the operations of a search.

    `source_lengths`: tokens of each source, its end symbol included. `output_lengths`: tokens of
    each translation, its end symbol included.

    Each step attends to the earlier positions and to the source. Keys and values of the source are
    computed once per sentence.
    """
    steps = RowLengths.unpadded(output_lengths, by_steps=True)
    return model.forward_flops(RowLengths.unpadded(source_lengths), steps, beam)


def count_flops(model: Seq2Seq, source: RowLengths, target: RowLengths) -> tuple[int, int]:
    """Count the operations of both passes of a batch, with padding and for real tokens alone."""
    alone = (RowLengths.unpadded(side.tokens) for side in (source, target))
    return training_flops(model, source, target), training_flops(model, *alone)
