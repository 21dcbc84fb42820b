"""
Diverse beam search.

Vijayakumar et al. 2018, “Diverse Beam Search for Improved Description of Complex Scenes” (2016 as
“Decoding Diverse Solutions from Neural Sequence Models”), algorithm 1. The beam is divided into
groups. At each step the first group extends as plain beam search does. Every later group pays a
cost for each token (Hamming diversity): `diversity_strength` times the number of earlier groups'
hypotheses that chose the token in this step. The cost stays with the hypothesis, as in line 5 of
the algorithm, but it only decides which hypotheses survive. Scores contain no cost.

The paper lets every beam run to the last step and does not mention end symbols. Here a hypothesis
that ends leaves its group, as in plain beam search; its end symbol counts like any chosen token.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.model.contracts import Seq2Seq
from heedful.search.beam import beam_search, prune, search
from heedful.search.coverage import check_coverage
from heedful.search.hypothesis import Hypothesis
from heedful.search.observer import SearchObserver
from heedful.search.rules import DecodingRule
from heedful.search.settings import SearchOptions
from heedful.search.step import Candidates, extend, start_decoding


@torch.inference_mode()
def diverse_beam_search(
    model: Seq2Seq,
    source: Int[Tensor, "sentences source"],
    limits: Sequence[int],
    settings: SearchOptions,
    rules: Sequence[DecodingRule] = (),
    observer: SearchObserver | None = None,
) -> list[list[Hypothesis]]:
    """
    Translate a batch of sentences by diverse beam search.

    `limits`: maximum number of target tokens of each sentence, not counting the end symbol.
    `settings`: its beam is divided among `diverse_groups`; `eos_ranks` applies to each group.
    Returns distinct hypotheses for each sentence, best first.

    The best hypothesis of each group is chosen first, then the second best of each group, and so
    on. Duplicates between groups are removed, and plain beam search fills up the list. The paper
    suggests costs of 0.2 to 0.8, and as many groups as hypotheses.
    """
    check_coverage(settings.coverage_penalty, [model])
    next_log_probabilities, state, tokens = start_decoding(model, source)
    groups, n_best = settings.diverse_groups, settings.n_best
    beams = torch.arange(len(limits), device=source.device).repeat_interleave(groups)
    by_group = search(
        next_log_probabilities,
        state.select(beams),  # one row per group
        tokens[beams],
        limits,
        settings,
        end_token=model.end_token,
        rules=rules,
        extend_by=_GroupsInTurn(settings, model.end_token),
        observer=observer,
    )
    lists = [
        interleave_groups(by_group[row * groups : (row + 1) * groups], n_best)
        for row in range(len(limits))
    ]
    if all(len(chosen) == n_best for chosen in lists):
        return lists
    size = settings.size
    plain_settings = replace(
        settings, beam=size, n_best=size, diverse_groups=1, diversity_strength=None
    )
    plain = beam_search(model, source, limits, plain_settings, rules)
    return [_fill_list(chosen, more, n_best) for chosen, more in zip(lists, plain, strict=True)]


def _fill_list(chosen: list[Hypothesis], more: list[Hypothesis], n_best: int) -> list[Hypothesis]:
    """Fill a short list with the best hypotheses of another list that are not in it."""
    known = {hypothesis.tokens for hypothesis in chosen}
    new = [hypothesis for hypothesis in more if hypothesis.tokens not in known]
    return sorted([*chosen, *new[: n_best - len(chosen)]], key=_worse)


def interleave_groups(groups: Sequence[Sequence[Hypothesis]], n_best: int) -> list[Hypothesis]:
    """
    Interleave the hypotheses of several groups, each sorted with the best first.

    If only scores decided, the list would often contain only hypotheses of the first group.
    """
    # The same tokens may be complete in one group and cut at the limit in another.
    best: dict[tuple[int, ...], Hypothesis] = {}
    for hypothesis in sorted(chain.from_iterable(groups), key=_worse):
        best.setdefault(hypothesis.tokens, hypothesis)
    ranks = zip_longest(*groups)
    in_turn = (sorted(filter(None, rank), key=_worse) for rank in ranks)
    texts = dict.fromkeys(hypothesis.tokens for rank in in_turn for hypothesis in rank)
    return sorted((best[tokens] for tokens in list(texts)[:n_best]), key=_worse)


@dataclass(frozen=True)
class _GroupsInTurn:
    """Extension of the groups of each sentence, one after the other."""

    settings: SearchOptions
    end_token: int

    def __call__(
        self,
        totals: Float[Tensor, "beams width"],
        scores: Float[Tensor, "beams width vocabulary"],
        prefixes: Int[Tensor, "rows length"],
        sentence_of_row: Int[Tensor, " rows"],
    ) -> Candidates:
        """Subtract the diversity cost of earlier groups' tokens from each group's scores."""
        del prefixes, sentence_of_row
        groups, width = self.settings.diverse_groups, self.settings.width
        sentences, vocabulary = len(scores) // groups, scores.size(2)
        counts = scores.new_zeros(sentences, vocabulary)
        parts = []
        for group in range(groups):
            # 1. extend with the cost; read the model's log-probabilities without the cost
            own = scores[group::groups]  # (sentences, width, vocabulary)
            paid = own - self.settings.group_cost * counts.unsqueeze(1)
            best = extend(totals[group::groups], paid, 2 * width)  # (sentences, 2 * width)
            where = best.parents * vocabulary + best.tokens
            unpaid = own.flatten(1).gather(1, where)  # (sentences, 2 * width)
            parts.append((best.totals, unpaid, best.parents, best.tokens))

            # 2. count the tokens of this group's open hypotheses, and the end symbols that finish
            # hypotheses
            ended = best.tokens == self.end_token
            chosen = torch.zeros_like(ended).scatter(1, prune(ended, width), True) & ~ended
            counted = self.settings.eos_ranks
            chosen[:, :counted] |= ended[:, :counted]
            chosen &= best.totals > float("-inf")
            counts.scatter_add_(1, best.tokens, chosen.to(counts.dtype))
        totals, log_probabilities, parents, tokens = (
            torch.stack(columns, dim=1).flatten(0, 1)  # (sentences * groups, 2 * width)
            for columns in zip(*parts, strict=True)
        )
        return Candidates(totals, log_probabilities, parents, tokens)


def _worse(hypothesis: Hypothesis) -> tuple[bool, float]:
    """Return the sort key: complete hypotheses before cut hypotheses, then by score."""
    return not hypothesis.ended, -hypothesis.score
