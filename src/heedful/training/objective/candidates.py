"""
Candidates: the model's own translations, their log-probabilities with gradients, and rewards.

::

    source ─ search ─ candidates ─ text ──────── rewards ─┐
                          └─ model, with gradients ─ log P ┴─ loss of the pair (`PairLosses`)

Dropout is off in both passes, as in GNMT, so the model that scores candidates equals the model that
proposed them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from heedful.data.batching import Batch, Rows, pad
from heedful.evaluation.reward_metrics import SentenceMetric
from heedful.kernels.api import chunk_rows
from heedful.model.contracts import Seq2Seq, count_flops
from heedful.model.flops import RowLengths
from heedful.search.length import LengthLimit
from heedful.search.rules import AllowedTokens
from heedful.training.objective.likelihood import Likelihood, LossPart
from heedful.training.state import StepTotals

Ids = Sequence[int]


class OwnTranslation(NamedTuple):
    """The model's translation of the source of a pair."""

    tokens: tuple[int, ...]
    """Target ids without the start and end symbols."""
    ended: bool = True
    """Whether the probability includes the end symbol."""


@dataclass(frozen=True)
class Judge:
    """The computation of rewards from the text of candidates."""

    decode: Callable[[Ids], str]
    """Converts target ids to text."""
    metric: SentenceMetric

    def __call__(self, candidates: Sequence[OwnTranslation], reference: Ids) -> list[float]:
        """Compute the reward of each candidate; equal texts are scored once."""
        texts = [self.decode(candidate.tokens) for candidate in candidates]
        unique = list(dict.fromkeys(texts))
        reward = dict(zip(unique, self.metric(unique, self.decode(reference)), strict=True))
        return [reward[text] for text in texts]


class PairLosses(NamedTuple):
    """Losses of several pairs."""

    loss: Tensor
    """A sum with the same gradient as the objective; its value may differ from the objective."""
    value: float
    """Sum of the objective over the pairs."""
    figure: float
    """Sum, over the pairs, of the objective's figure in the log."""


@dataclass(kw_only=True)
class CandidateObjective(ABC):
    """An objective over the model's own translations, mixed with the likelihood of references."""

    figure: ClassVar[str]
    judge: Judge
    candidates: int
    """Number of translations of each pair."""
    likelihood_weight: float
    """Factor of the log-likelihood: alpha in GNMT's equation 9."""
    limit: LengthLimit
    """Maximum number of tokens of a candidate."""
    allowed: AllowedTokens
    """Tokens that searches may generate; probabilities are normalized over these tokens."""
    micro_batch_tokens: int
    """Maximum number of candidate tokens, padding included, that are processed at once."""

    @abstractmethod
    def describe(self) -> str:
        """Describe the objective for the messages at the start of training."""

    @abstractmethod
    def propose(
        self,
        model: Seq2Seq,
        source: Int[Tensor, "pairs source"],
        limits: Sequence[int],
        rows: Rows,
        step: int,
    ) -> list[list[OwnTranslation]]:
        """Find candidates for each pair. `limits`: maximum number of tokens for each pair."""

    @abstractmethod
    def losses(
        self,
        log_probabilities: Float[Tensor, "pairs candidates"],
        rewards: Float[Tensor, "pairs candidates"],
        real: Bool[Tensor, "pairs candidates"],
    ) -> PairLosses:
        """Compute the losses. `real`: true where there is a candidate; elsewhere log P is 0."""

    @abstractmethod
    def proposal_flops(
        self,
        model: Seq2Seq,
        source_lengths: Sequence[int],
        candidates: Sequence[Sequence[OwnTranslation]],
    ) -> int:
        """Count the operations of the search that found the candidates of each pair."""

    def with_references(
        self, candidates: list[list[OwnTranslation]], references: list[Ids]
    ) -> list[list[OwnTranslation]]:
        """Add references to the candidates, if the objective includes them."""
        del references
        return candidates

    def parts(self, model: Seq2Seq, batch: Batch, rows: Rows, step: int) -> Iterator[LossPart]:
        """Compute the loss of the references, then of the candidates of a few pairs at a time."""
        before = model.training
        model.eval()
        try:
            likelihood = Likelihood(weight=self.likelihood_weight)
            yield from likelihood.parts(model, batch, rows, step)
            longest = max(batch.source.size(1), batch.target_out.size(1))
            most = max(1, self.micro_batch_tokens // (self.candidates * longest))
            for first in range(0, len(rows), most):
                few = slice(first, first + most)
                yield self._part(model, batch.source[few], batch.target_out[few], rows[few], step)
        finally:
            model.train(before)

    def _part(
        self, model: Seq2Seq, source: Tensor, target_out: Tensor, rows: Rows, step: int
    ) -> LossPart:
        """Compute the loss of the candidates of some pairs."""
        lengths = (source != model.padding).sum(dim=1).tolist()
        source = source[:, : max(lengths)]  # (pairs, source), without columns of padding
        references: list[Ids] = [
            [token for token in row if token not in (model.padding, model.end_token)]
            for row in target_out.tolist()
        ]
        words = (source != model.padding) & (source != model.end_token)  # as in translation
        limits = [self.limit.tokens(length) for length in words.sum(dim=1).tolist()]
        candidates = self.propose(model, source, limits, rows, step)
        if not all(candidates):  # a search finds nothing if the scores are not finite
            undefined = float("nan")
            sums = StepTotals(loss=undefined, figure=undefined, pairs=float(len(rows)))
            return LossPart(undefined * model.output.weight.sum(), lambda: sums)
        searched = self.proposal_flops(model, lengths, candidates)
        candidates = self.with_references(candidates, references)
        rewards = [self.judge(*pair) for pair in zip(candidates, references, strict=True)]

        # for each candidate: the index of its pair, and its index among the candidates of this pair
        owners = [pair for pair, pair_candidates in enumerate(candidates) for _ in pair_candidates]
        places = [place for pair_candidates in candidates for place in range(len(pair_candidates))]
        where = (
            torch.tensor(owners, device=source.device),
            torch.tensor(places, device=source.device),
        )
        flat = candidate_log_probabilities(
            model,
            source[where[0]],
            [candidate for pair_candidates in candidates for candidate in pair_candidates],
            self.allowed,
        )
        table = flat.new_zeros(len(candidates), max(map(len, candidates)))  # (pairs, candidates)
        all_rewards = flat.new_tensor(
            [reward for pair_rewards in rewards for reward in pair_rewards]
        )
        losses = self.losses(
            table.index_put(where, flat),
            table.index_put(where, all_rewards),
            table.index_put(where, torch.ones_like(flat)).bool(),
        )
        # the trainer has counted the pass over the references; add the search and the scoring
        scored = count_flops(
            model,
            RowLengths.padded([lengths[owner] for owner in owners]),
            RowLengths.padded(
                [
                    len(candidate.tokens) + 1
                    for pair_candidates in candidates
                    for candidate in pair_candidates
                ]
            ),
        )
        sums = StepTotals(
            loss=losses.value,
            figure=losses.figure,
            pairs=float(len(rows)),
            flops=float(searched + scored[0]),
            needed_flops=float(searched + scored[1]),
        )
        return LossPart(losses.loss, lambda: sums)


def candidate_log_probabilities(
    model: Seq2Seq,
    source: Int[Tensor, "rows source"],
    candidates: Sequence[OwnTranslation],
    allowed: AllowedTokens,
) -> Float[Tensor, " rows"]:
    """Compute each candidate's log-probability over the allowed tokens, with gradients."""
    # Searches generate only allowed tokens, so probabilities are normalized over these tokens.
    start, end, padding = model.start_token, model.end_token, model.padding
    target_in = pad([[start, *candidate.tokens] for candidate in candidates], padding).to(
        source.device
    )
    outs = [[*candidate.tokens, end if candidate.ended else padding] for candidate in candidates]
    target_out = pad(outs, padding).to(source.device)  # (rows, target)
    real = target_out != padding  # (rows, target)
    states = model.states(source, target_in)[real]  # (tokens, d_model)
    weight, bias = model.output.weight, model.output.bias
    nothing = target_out.new_empty(1, 0)
    zeros = torch.zeros(1, weight.size(0), device=source.device)
    barred = allowed(zeros, nothing, nothing.new_zeros(1))[0]  # (vocabulary,), 0 or minus infinity
    tokens = target_out[real]  # (tokens,)
    # the backward pass recomputes the logits, because the logits of all tokens need too much memory
    scores = [
        checkpoint(
            _log_probabilities, states[part], tokens[part], weight, bias, barred,
            use_reentrant=False, preserve_rng_state=False,
        )
        for part in chunk_rows(len(tokens), weight.size(0), source.device)
    ]  # fmt: skip
    # sum by rows: a resumed run needs a fixed order, but adding by index has none on a GPU
    table = torch.zeros(real.shape, device=source.device)
    return table.masked_scatter(real, torch.cat([*scores, table[0, :0]])).sum(dim=1)


def _log_probabilities(
    states: Tensor, tokens: Tensor, weight: Tensor, bias: Tensor | None, barred: Tensor
) -> Tensor:
    """Compute the log-probability of one token for each state."""
    scores = torch.log_softmax(nn.functional.linear(states, weight, bias).float() + barred, dim=1)
    return scores.gather(1, tokens.unsqueeze(1)).squeeze(1)
