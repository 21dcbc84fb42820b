"""
Minimum risk over n-best lists (Shen et al. 2016; over beams: Edunov et al. 2018).

::

    Q(y)   = P(y)^s / sum over the list of P^s        s: sharpness
    risk   = sum over the list of Q(y) (1 - reward of y)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.data.batching import Rows
from heedful.model.contracts import Seq2Seq, search_flops
from heedful.search.search import run_search
from heedful.search.settings import SearchOptions
from heedful.training.objective.candidates import (
    CandidateObjective,
    Ids,
    OwnTranslation,
    PairLosses,
)


@dataclass(kw_only=True)
class MinimumRisk(CandidateObjective):
    """
    The risk of the n-best list that beam search finds for each pair.

    The list itself is treated as constant; gradients flow only through the probabilities.
    """

    figure = "risk"
    search: SearchOptions
    """Settings of the search, whose `n_best` equals the number of candidates."""
    sharpness: float
    """Exponent of the probabilities before they are renormalized."""
    with_reference: bool
    """Whether the reference is one of the candidates."""

    def describe(self) -> str:
        return f"risk over the {self.candidates} best translations of each source"

    def propose(
        self, model: Seq2Seq, source: Tensor, limits: Sequence[int], rows: Rows, step: int
    ) -> list[list[OwnTranslation]]:
        del rows, step
        lists = run_search(model, source, limits, self.search, rules=[self.allowed])
        return [
            [OwnTranslation(hypothesis.tokens, hypothesis.ended) for hypothesis in hypotheses]
            for hypotheses in lists
        ]

    def proposal_flops(
        self,
        model: Seq2Seq,
        source_lengths: Sequence[int],
        candidates: Sequence[Sequence[OwnTranslation]],
    ) -> int:
        longest = [max(len(translation.tokens) + 1 for translation in pair) for pair in candidates]
        return search_flops(model, source_lengths, longest, self.search.size)

    def with_references(
        self, candidates: list[list[OwnTranslation]], references: list[Ids]
    ) -> list[list[OwnTranslation]]:
        if not self.with_reference:
            return candidates
        return [
            list(dict.fromkeys([*pair_candidates, OwnTranslation(tuple(reference))]))
            for pair_candidates, reference in zip(candidates, references, strict=True)
        ]

    def losses(self, log_probabilities: Tensor, rewards: Tensor, real: Tensor) -> PairLosses:
        scores = (self.sharpness * log_probabilities).masked_fill(~real, float("-inf"))
        risk = (torch.softmax(scores, dim=1) * (1.0 - rewards)).sum()
        return PairLosses(risk, float(risk.detach()), float(risk.detach()))
