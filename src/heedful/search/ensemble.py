"""
Ensembles: several models that decode together.

The probability of a token is the mean of the probabilities that the models give it. As in Sutskever
et al. 2014, an ensemble averages probabilities, not their logarithms. So one confident model can
make a token probable, and no model can veto a token.

An `Ensemble` implements `heedful.model.contracts.Seq2Seq`, so every search can use it as a model.
Its states are the concatenated states of its members. Projecting them gives normalized
log-probabilities, which a log-softmax leaves unchanged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.model.contracts import DecodingState, Seq2Seq
from heedful.model.embedding import OutputLayer


@dataclass(frozen=True)
class EnsembleState:
    """The states of all members; implements `heedful.model.contracts.DecodingState`."""

    members: tuple[DecodingState, ...]
    """States of the members, in order."""
    begun: bool = False
    """Whether the first target token has been read."""

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "EnsembleState":
        """Select rows. `sentences`: indices of the sentences that stay; all if None."""
        members = tuple(member.select(rows, sentences) for member in self.members)
        return EnsembleState(members, self.begun)


class Ensemble(Seq2Seq):
    """
    Several models whose probabilities are averaged.

    `weights`: weight of each model, normalized to a sum of one; equal if None.

    The caller must ensure that all members share a tokenizer, which models do not contain. Members
    may start their targets with different symbols. If output matrices are padded to different
    sizes, the missing ids have a probability of zero. An ensemble cannot be trained.

    Raises `ValueError` without models, or unless `weights` has one number above 0 for each model.
    """

    log_weights: Tensor

    def __init__(self, models: Sequence[Seq2Seq], weights: Sequence[float] | None = None) -> None:
        counts = [1.0] * len(models) if weights is None else list(weights)
        if not models or len(counts) != len(models) or min(counts) <= 0.0:
            raise ValueError(
                f"an ensemble needs at least one model and one weight above 0 for each model, but "
                f"has {len(models)} models and the weights {counts}"
            )
        super().__init__(models[0].padding, models[0].start_token, models[0].end_token)
        self.models = nn.ModuleList(models)
        tables = [model.output.weight for model in models]
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
        return [model.encode(source) for model in self.members]

    def states(
        self, source: Int[Tensor, "batch source"], target_in: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target widths"]:
        states = []
        for model in self.members:
            own = target_in.clone()
            own[:, 0] = model.start_token
            states.append(model.states(source, own))
        return torch.cat(states, dim=-1)

    def start(self, memory: list[Any]) -> EnsembleState:
        pairs = zip(self.members, memory, strict=True)
        return EnsembleState(tuple(model.start(own) for model, own in pairs))

    def step(
        self, state: EnsembleState, tokens: Int[Tensor, " rows"]
    ) -> tuple[Float[Tensor, "rows widths"], EnsembleState]:
        """Process one more target token of each hypothesis."""
        # The first token is each member's own start token. Dead rows of a search may have ids
        # beyond a member's table; such a member reads the last row of its table instead.
        states, members = [], []
        for model, own, rows in zip(self.members, state.members, self.rows, strict=True):
            newest = torch.full_like(tokens, model.start_token)
            if state.begun:
                newest = tokens.clamp(max=rows - 1)
            output, newer = model.step(own, newest)
            states.append(output)
            members.append(newer)
        return torch.cat(states, dim=-1), EnsembleState(tuple(members), True)

    def project(self, states: Float[Tensor, "*batch widths"]) -> Float[Tensor, "*batch vocabulary"]:
        """Compute ``log sum_i w_i p_i``, scaled by the largest term to avoid underflow."""
        per_model = []
        parts = states.split(self.widths, dim=-1)
        for model, part in zip(self.members, parts, strict=True):
            part = part.to(model.output.weight.dtype)  # concatenation may have changed the type
            logs = torch.log_softmax(model.project(part).float(), dim=-1)
            filling = max(self.rows) - logs.size(-1)
            per_model.append(nn.functional.pad(logs, (0, filling), value=float("-inf")))
        return self.mean(torch.stack(per_model, dim=-1))

    def log_probabilities(
        self, states: Float[Tensor, "*batch widths"]
    ) -> Float[Tensor, "*batch vocabulary"]:
        return torch.log_softmax(self.project(states).float(), dim=-1)

    def mean(self, log_probabilities: Float[Tensor, "*any models"]) -> Float[Tensor, "*any"]:
        """Average probabilities; both input and result are logarithms."""
        weighted = log_probabilities + self.log_weights.to(log_probabilities.dtype)
        return torch.logsumexp(weighted, dim=-1)

    @property
    def output(self) -> OutputLayer:  # type: ignore[override]
        """Refuse: an ensemble has no single output matrix."""
        # A mean of softmaxes is not the softmax of a single output matrix; use `project` instead.
        # The loss needs a matrix, so an ensemble cannot be trained as one model.
        raise TypeError("an ensemble has no output matrix of its own; each member has one")

    @property
    def device(self) -> torch.device:
        return self.members[0].device
