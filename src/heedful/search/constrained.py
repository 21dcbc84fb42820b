"""
Constrained beam search: translations that contain given phrases.

Dynamic beam allocation (Post and Vilar 2018): at each step candidates are sorted into banks by the
number of constraint tokens met. The beam is divided among the banks. So hypotheses that contain an
improbable constraint are not crowded out by more probable hypotheses.

::

    candidates   the best extensions of all hypotheses; the best extension of each hypothesis;
                 each hypothesis with every token that continues a phrase
    banks        groups of candidates with the same number of phrase tokens met, including tokens
                 of an unfinished phrase
    deal         one candidate of each bank in turn, beginning with the bank that has met the most
                 tokens, until the beam is full

The paper gives every bank an equal share and moves unused slots to neighboring banks. Here the
banks that have candidates take turns, and so share the beam. The tokens of a hypothesis show which
constraints it has met (`heedful.search.phrases`). So phrases may overlap and repeat, and it does
not matter whether the search chose a token to meet a constraint.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.model.contracts import Seq2Seq
from heedful.search.beam import search
from heedful.search.coverage import check_coverage
from heedful.search.hypothesis import Hypothesis
from heedful.search.observer import SearchObserver
from heedful.search.phrases import PhraseProgress, Phrases
from heedful.search.rules import DecodingRule
from heedful.search.settings import SearchOptions
from heedful.search.step import Candidates, pick, start_decoding

_Item = TypeVar("_Item")


@torch.inference_mode()
def constrained_beam_search(
    model: Seq2Seq,
    source: Int[Tensor, "sentences source"],
    limits: Sequence[int],
    settings: SearchOptions,
    phrases: Sequence[Sequence[Sequence[int]]],
    rules: Sequence[DecodingRule] = (),
    observer: SearchObserver | None = None,
) -> list[list[Hypothesis]]:
    """
    Translate a batch of sentences so that given phrases occur.

    `limits`: maximum number of target tokens of each sentence, not counting the end symbol.
    `phrases`: for each sentence the token sequences that must occur, each as often as it is listed.
    Returns for each sentence its best hypotheses, best first. All ended hypotheses contain the
    phrases. If too few hypotheses have ended within the limit, the list continues with hypotheses
    that were cut at the limit, with `ended` False. Cut hypotheses are listed in the order of the
    beam, in which the banks take turns. With the policy ``keep``, hypotheses at the limit count,
    but those that lack a phrase come last.

    A hypothesis may end only when it contains all phrases. Without phrases the result equals the
    result of `beam_search`.
    """
    check_coverage(settings.coverage_penalty, [model])
    sought = [Phrases(required) for required in phrases]
    return search(
        *start_decoding(model, source),
        limits,
        settings,
        end_token=model.end_token,
        rules=rules,
        extend_by=_Allocation(sought, settings.size, model.end_token),
        missing=[phrases_of.missing for phrases_of in sought],
        observer=observer,
    )


def divide_beam(banks: Mapping[int, Sequence[_Item]], wanted: int) -> list[_Item]:
    """
    Take one item of each bank in turn, beginning with the bank that has met the most tokens.

    In every prefix of the result, the numbers of items from the banks are as equal as possible.

    >>> divide_beam({0: ["a", "b", "c"], 2: ["x"]}, 3)
    ['x', 'a', 'b']
    """
    queues = [banks[met] for met in sorted(banks, reverse=True)]
    rounds = zip_longest(*queues)
    return [item for items in rounds for item in items if item is not None][:wanted]


@dataclass(frozen=True)
class _Allocation:
    """Choice of extensions that gives every bank its share of the beam."""

    sought: Sequence[Phrases]
    beam: int
    end_token: int

    def __call__(
        self,
        totals: Float[Tensor, "sentences width"],
        scores: Float[Tensor, "sentences width vocabulary"],
        prefixes: Int[Tensor, "rows length"],
        sentence_of_row: Int[Tensor, " rows"],
    ) -> Candidates:
        """Collect candidates, sort them into banks and divide the beam."""
        # 1. progress of each hypothesis, which may not end before it contains all phrases
        width, vocabulary = scores.shape[1:]
        sought = [self.sought[sentence] for sentence in sentence_of_row[::width].tolist()]
        texts = iter(prefixes.tolist())
        progress = [
            [sentence_phrases.read(tuple(next(texts))) for _ in range(width)]
            for sentence_phrases in sought
        ]
        pairs = list(zip(sought, progress, strict=True))
        unmet = [
            [not sentence_phrases.met(hypothesis_progress) for hypothesis_progress in group]
            for sentence_phrases, group in pairs
        ]
        may_not_end = torch.tensor(unmet, device=scores.device)
        scores[:, :, self.end_token].masked_fill_(may_not_end, float("-inf"))

        # 2. candidates: the best of all hypotheses, and the best of each hypothesis
        everything = (totals.unsqueeze(2) + scores).flatten(1)  # (sentences, width * vocabulary)
        wanted = min(2 * self.beam, width * vocabulary)
        firsts = torch.arange(width, device=scores.device) * vocabulary
        best_of_each = everything.view(scores.shape).argmax(dim=2) + firsts  # (sentences, width)
        best = torch.cat([everything.topk(wanted, dim=1).indices, best_of_each], dim=1)
        values = everything.gather(1, best).tolist()  # (sentences, wanted + width)
        candidates = [
            dict(zip(*places_and_totals, strict=True))
            for places_and_totals in zip(best.tolist(), values, strict=True)
        ]
        # 3. more candidates: each hypothesis with every token that continues a phrase
        onward = [
            (row, hypothesis * vocabulary + token)
            for row, (sentence_phrases, group) in enumerate(pairs)
            for hypothesis, hypothesis_progress in enumerate(group)
            for token in sorted(sentence_phrases.onward(hypothesis_progress))
        ]
        if onward:
            rows, places = torch.tensor(onward, device=scores.device).unbind(dim=1)
            for (row, place), total in zip(onward, everything[rows, places].tolist(), strict=True):
                candidates[row][place] = total
        # 4. banks, and the beam divided among them
        chosen = [
            self._choose(sentence_phrases, group, totals_of, vocabulary)[:wanted]
            for (sentence_phrases, group), totals_of in zip(pairs, candidates, strict=True)
        ]
        return pick(totals, scores, torch.tensor(chosen, device=scores.device))

    def _choose(
        self,
        sought: Phrases,
        progress: Sequence[PhraseProgress],
        candidates: Mapping[int, float],
        vocabulary: int,
    ) -> list[int]:
        """Choose the candidates of one sentence; forbidden candidates come last."""
        banks: dict[int, list[int]] = {}
        dead = []
        for place in sorted(candidates, key=lambda place: -candidates[place]):
            hypothesis, token = divmod(place, vocabulary)
            parent_progress = progress[hypothesis]
            if candidates[place] == float("-inf"):
                dead.append(place)
            else:
                after = (
                    parent_progress
                    if token == self.end_token
                    else sought.after(parent_progress, token)
                )
                banks.setdefault(sought.bank(after), []).append(place)
        return [*divide_beam(banks, len(candidates)), *dead]
