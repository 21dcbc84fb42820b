"""
Several models that write one translation together.

The probability of a token is the mean of the probabilities that the models give it. Averaging
probabilities, not their logarithms, is what the word ensemble has meant in this field since
Sutskever et al. 2014: one sure model can carry a token, none can veto it.

An `Ensemble` fulfils the contract of `heedful.model.seq2seq`, so every search takes it for a model:
its states are the states of its members side by side, and projecting them gives log-probabilities
that are normalised already, which a softmax leaves as they are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.model.seq2seq import DecodingState, Seq2Seq


@dataclass(frozen=True)
class EnsembleState:
    """
    Remember what each member remembers.

    Attributes
    ----------
    members : tuple of DecodingState
        Their states, in order.
    begun : bool
        Whether the first target token has been read.

    Notes
    -----
    Fulfils the contract `heedful.model.seq2seq.DecodingState`.
    """

    members: tuple[DecodingState, ...]
    begun: bool = False

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "EnsembleState":
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
        EnsembleState
            The chosen rows of every member.

        Notes
        -----
        Each member knows how to reorder what is its own.
        """
        members = tuple(member.select(rows, sentences) for member in self.members)
        return EnsembleState(members, self.begun)


class Ensemble(Seq2Seq):
    """
    Average the probabilities of several models.

    Parameters
    ----------
    models : sequence of Seq2Seq
        Of any architecture and size, with the same tokens on both sides and on one device.
    weights : sequence of float, optional
        What each model counts, divided by their sum; all the same when absent.

    Raises
    ------
    ValueError
        If there is no model, or the weights are not one number above 0 for each.

    Notes
    -----
    Whether the tokens are the same is for the caller to know: models do not know their tokenizer.
    Members may begin their targets with different symbols. Where an output table is filled up to
    a larger round size than another's, the other gives those ids no probability. It is there to
    be searched, not to be trained.
    """

    log_weights: Tensor

    def __init__(self, models: Sequence[Seq2Seq], weights: Sequence[float] | None = None) -> None:
        counts = [1.0] * len(models) if weights is None else list(weights)
        if not models or len(counts) != len(models) or min(counts) <= 0.0:
            raise ValueError(
                f"an ensemble needs one weight above 0 for each of its models, at least one, but "
                f"has {len(models)} models and the weights {counts}"
            )
        super().__init__(models[0].padding, models[0].start_token, models[0].end_token)
        self.models = nn.ModuleList(models)
        tables = [model.output()[0] for model in models]
        self.rows = [table.size(0) for table in tables]
        self.widths = [table.size(1) for table in tables]
        logs = [math.log(count / sum(counts)) for count in counts]
        self.register_buffer("log_weights", torch.tensor(logs, device=models[0].device))
        self.train(models[0].training)

    @property
    def members(self) -> list[Seq2Seq]:
        """The models, in order."""
        return list(self.models)  # type: ignore[arg-type]

    def encode(self, source: Int[Tensor, "batch source"]) -> list[Any]:
        """
        Read the source with every member.

        Parameters
        ----------
        source : Tensor of int, shape (batch, source)
            Padded token ids.

        Returns
        -------
        list of object
            What each member returned.

        Notes
        -----
        Called once for a batch of sentences.
        """
        return [model.encode(source) for model in self.members]

    def forward(
        self, source: Int[Tensor, "batch source"], target_in: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target widths"]:
        """
        Compute all decoder states at once, the target being known.

        Parameters
        ----------
        source : Tensor of int, shape (batch, source)
            Padded token ids.
        target_in : Tensor of int, shape (batch, target)
            The target, moved right by one: it begins with the start token.

        Returns
        -------
        Tensor of float, shape (batch, target, sum of the members' widths)
            The members' states side by side.

        Notes
        -----
        Each member reads its own start token.
        """
        states = []
        for model in self.members:
            own = target_in.clone()
            own[:, 0] = model.start_token
            states.append(model(source, own))
        return torch.cat(states, dim=-1)

    def start(self, memory: list[Any]) -> EnsembleState:
        """
        Prepare decoding, one hypothesis a sentence.

        Parameters
        ----------
        memory : list of object
            What `encode` returned.

        Returns
        -------
        EnsembleState
            The state before the first token.

        Notes
        -----
        Work that belongs to the source is done here by every member.
        """
        pairs = zip(self.members, memory, strict=True)
        return EnsembleState(tuple(model.start(own) for model, own in pairs))

    def step(
        self, state: EnsembleState, tokens: Int[Tensor, " rows"]
    ) -> tuple[Float[Tensor, "rows widths"], EnsembleState]:
        """
        Read one more target token for each hypothesis.

        Parameters
        ----------
        state : EnsembleState
            What `start` or the last `step` returned.
        tokens : Tensor of int, shape (rows,)
            The newest token of each hypothesis, the start token first.

        Returns
        -------
        states : Tensor of float, shape (rows, sum of the members' widths)
            The members' states side by side.
        state : EnsembleState
            To be handed to the next call.

        Notes
        -----
        The first token is each member's own start token. Rows of a search that are dead may hold
        ids that only fill another member's table up; a member that has no such row reads its last.
        """
        states, members = [], []
        for model, own, rows in zip(self.members, state.members, self.rows, strict=True):
            newest = torch.full_like(tokens, model.start_token)
            if state.begun:
                newest = tokens.clamp(max=rows - 1)
            found, newer = model.step(own, newest)
            states.append(found)
            members.append(newer)
        return torch.cat(states, dim=-1), EnsembleState(tuple(members), True)

    def project(self, states: Float[Tensor, "*batch widths"]) -> Float[Tensor, "*batch vocabulary"]:
        """
        Compute the logarithm of the mean probability of each token.

        Parameters
        ----------
        states : Tensor of float, shape (..., sum of the members' widths)
            What `forward` or `step` returned.

        Returns
        -------
        Tensor of float32, shape (..., vocabulary)
            Log-probabilities; their exponentials sum to one.

        Notes
        -----
        ``log sum_i w_i p_i``, taken through the largest term so that nothing underflows.
        """
        found = []
        parts = states.split(self.widths, dim=-1)
        for model, part in zip(self.members, parts, strict=True):
            each = torch.log_softmax(model.project(part).float(), dim=-1)
            filling = max(self.rows) - each.size(-1)
            found.append(nn.functional.pad(each, (0, filling), value=float("-inf")))
        return self.mean(torch.stack(found, dim=-1))

    def mean(self, log_probabilities: Float[Tensor, "*any models"]) -> Float[Tensor, "*any"]:
        """
        Average probabilities that are given as logarithms.

        Parameters
        ----------
        log_probabilities : Tensor of float, shape (..., models)
            What each member says.

        Returns
        -------
        Tensor of float, shape (...,)
            Logarithm of the weighted mean.

        Notes
        -----
        Also for the scores of given translations, which each member computes in one pass.
        """
        weighted = log_probabilities + self.log_weights.to(log_probabilities.dtype)
        return torch.logsumexp(weighted, dim=-1)

    def output(self) -> tuple[Tensor, Tensor | None]:
        """
        Refuse: the members' tables cannot be written as one.

        Returns
        -------
        table : Tensor
            Never.
        bias : Tensor or None
            Never.

        Raises
        ------
        TypeError
            Always.

        Notes
        -----
        A mean of softmaxes is no softmax of one product; ask `project`. The loss takes a table, so
        an ensemble cannot be trained as one model.
        """
        raise TypeError("an ensemble has an output table for each member and none of its own")

    @property
    def device(self) -> torch.device:
        """Where the weights of all members are."""
        return self.members[0].device
