"""
The contract that training and search rely on.

Training calls `forward`; search calls `encode` once, `start` once, then `step` and `project` for
each new token. Whoever fulfils it can be trained and searched; nothing above this file asks which
architecture it is.
"""

from abc import ABC, abstractmethod
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


@runtime_checkable
class DecodingState(Protocol):
    """
    What a decoder remembers between two steps.

    Notes
    -----
    Rows are hypotheses, sentence by sentence, the same number for each sentence. What belongs to
    the source is kept once a sentence, so it is neither copied nor reordered with the hypotheses.
    """

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "DecodingState":
        """
        Continue with other rows.

        Parameters
        ----------
        rows : Tensor of int, shape (new rows,)
            Which old row each new row continues.
        sentences : Tensor of int, shape (new sentences,), optional
            Which sentences stay; all when absent.

        Returns
        -------
        DecodingState
            The remembered part of the chosen rows.

        Notes
        -----
        Rows may be repeated, dropped and put in another order.
        """
        ...


class Seq2Seq(nn.Module, ABC):
    """
    A model that reads one sequence and writes another.

    Parameters
    ----------
    padding : int
        The id that fills short rows up.
    start_token : int
        The id that stands before the first target token.
    end_token : int
        The id that ends a sequence.

    Notes
    -----
    Everything is batch-first. Hidden states, not logits, are what `forward` and `step` return, so
    that the loss can work on the vocabulary in chunks.
    """

    def __init__(self, padding: int, start_token: int, end_token: int) -> None:
        super().__init__()
        self.padding, self.start_token, self.end_token = padding, start_token, end_token

    @abstractmethod
    def encode(self, source: Int[Tensor, "batch source"]) -> Any:
        """
        Read the source.

        Parameters
        ----------
        source : Tensor of int, shape (batch, source)
            Padded token ids.

        Returns
        -------
        object
            Whatever `start` of the same model needs.

        Notes
        -----
        Called once for a batch of sentences.
        """

    @abstractmethod
    def forward(
        self, source: Int[Tensor, "batch source"], target_in: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target d_model"]:
        """
        Compute all decoder states at once, the target being known (teacher forcing).

        Parameters
        ----------
        source : Tensor of int, shape (batch, source)
            Padded token ids.
        target_in : Tensor of int, shape (batch, target)
            The target, moved right by one: it begins with the start token.

        Returns
        -------
        Tensor of float, shape (batch, target, d_model)
            The state at position i predicts target token i.

        Notes
        -----
        Must equal `start` and `step` taken token by token.
        """

    @abstractmethod
    def start(self, memory: Any) -> DecodingState:
        """
        Prepare decoding, one hypothesis a sentence.

        Parameters
        ----------
        memory : object
            What `encode` returned.

        Returns
        -------
        DecodingState
            The state before the first token.

        Notes
        -----
        Work that belongs to the source and not to a hypothesis is done here.
        """

    @abstractmethod
    def step(
        self, state: Any, tokens: Int[Tensor, " rows"]
    ) -> tuple[Float[Tensor, "rows d_model"], Any]:
        """
        Read one more target token for each hypothesis.

        Parameters
        ----------
        state : DecodingState
            What `start` or the last `step` returned.
        tokens : Tensor of int, shape (rows,)
            The newest token of each hypothesis, the start token first.

        Returns
        -------
        states : Tensor of float, shape (rows, d_model)
            They predict the next token.
        state : DecodingState
            To be handed to the next call.

        Notes
        -----
        The number of rows is a multiple of the number of sentences.
        """

    @abstractmethod
    def output(self) -> tuple[Tensor, Tensor | None]:
        """
        Return the table and the bias that turn states into logits.

        Returns
        -------
        weight : Tensor of float, shape (vocabulary, d_model)
            The output table.
        bias : Tensor of float, shape (vocabulary,), or None
            The output bias.

        Notes
        -----
        The loss takes these instead of logits.
        """

    def project(
        self, states: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocabulary"]:
        """
        Turn states into logits over the target vocabulary.

        Parameters
        ----------
        states : Tensor of float, shape (..., d_model)
            What `forward` or `step` returned.

        Returns
        -------
        Tensor of float, shape (..., vocabulary)
            Unnormalised log-probabilities.

        Notes
        -----
        The whole vocabulary for every state: fine for a step, too large for a training batch.
        """
        weight, bias = self.output()
        return nn.functional.linear(states, weight, bias)

    def log_probabilities(
        self, states: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocabulary"]:
        """
        Turn states into log-probabilities of the next token.

        Parameters
        ----------
        states : Tensor of float, shape (..., d_model)
            What `forward` or `step` returned.

        Returns
        -------
        Tensor of float32, shape (..., vocabulary)
            Natural logarithms; their exponentials sum to one.

        Notes
        -----
        What every step of a search asks for. The softmax is taken in fp32.
        """
        return torch.log_softmax(self.project(states).float(), dim=-1)

    @property
    def device(self) -> torch.device:
        """
        Where the weights are.

        Returns
        -------
        torch.device
            Device of the output table.

        Notes
        -----
        All weights of a model are on one device.
        """
        return self.output()[0].device
