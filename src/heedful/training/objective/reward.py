"""
Expected reward of sampled translations (Wu et al. 2016, section 5.2).

::

    maximize   E[r] over translations y of the model, and alpha log P of the reference
    gradient   of E[r] = E[(r(y) - b) grad log P(y)],   b: mean reward of the *other* samples

The baseline of a sample does not depend on the sample itself, so the estimate is unbiased. The mean
of all samples as the baseline would multiply the expected estimate by 1 - 1 / samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from heedful.data.batching import Rows
from heedful.model.contracts import Seq2Seq, search_flops
from heedful.search.rules import DecodingRule, ForcedEos
from heedful.search.sampling import sample
from heedful.search.settings import Sampling, SearchOptions
from heedful.training.objective.candidates import CandidateObjective, OwnTranslation, PairLosses


@dataclass(kw_only=True)
class ExpectedReward(CandidateObjective):
    """
    The expected reward, estimated from samples of each pair.

    The random numbers of samples depend only on (seed, step, pair). They do not depend on the order
    of a batch, on micro-batches, or on whether a run was resumed.
    """

    figure = "reward"
    seed: int
    """The seed of the training run."""

    def describe(self) -> str:
        return f"expected reward of {self.candidates} sampled translations of each source"

    def propose(
        self, model: Seq2Seq, source: Tensor, limits: Sequence[int], rows: Rows, step: int
    ) -> list[list[OwnTranslation]]:
        # samples must end at the limit, so that the probabilities of all samples add up to one
        rules: list[DecodingRule] = [
            self.allowed,
            ForcedEos(limits, model.end_token, source.device),
        ]
        drawn = Sampling(seed=_seed(self.seed, step))
        settings = SearchOptions(n_best=self.candidates, sample=drawn)
        samples = sample(model, source, limits, settings, rows.tolist(), rules)
        return [
            [
                OwnTranslation(hypothesis.tokens, len(hypothesis.tokens) < limit)
                for hypothesis in pair_samples
            ]
            for pair_samples, limit in zip(samples, limits, strict=True)
        ]

    def proposal_flops(
        self,
        model: Seq2Seq,
        source_lengths: Sequence[int],
        candidates: Sequence[Sequence[OwnTranslation]],
    ) -> int:
        encoding = search_flops(model, source_lengths, [0] * len(source_lengths))
        # the samples of a pair have different lengths, but share the encoded source
        rounds = zip(*candidates, strict=True)
        lengths = [[len(drawn.tokens) + 1 for drawn in samples] for samples in rounds]
        return encoding + sum(
            search_flops(model, source_lengths, steps) - encoding for steps in lengths
        )

    def losses(self, log_probabilities: Tensor, rewards: Tensor, real: Tensor) -> PairLosses:
        del real  # each pair has all its samples
        means = rewards.mean(dim=1, keepdim=True)  # (pairs, 1)
        # (r - mean of the other rewards) / samples = (r - mean of all rewards) / (samples - 1)
        advantages = (rewards - means) / (rewards.size(1) - 1)  # (pairs, samples)
        loss = -(advantages * log_probabilities).sum()
        return PairLosses(loss, float((1.0 - means).sum()), float(means.sum()))


def _seed(seed: int, step: int) -> int:
    """Hash the seed and the step to 63 bits."""
    word = np.random.SeedSequence([seed, step]).generate_state(1, np.uint64)[0]
    return int(word) >> 1
