"""Greedy search, and the token-by-token loop that it shares with sampling."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.model.contracts import DecodingState, Seq2Seq
from heedful.search.hypothesis import Hypothesis
from heedful.search.length import LengthPenalty
from heedful.search.observer import HypothesisView, SearchObserver, Snapshot
from heedful.search.rules import DecodingRule, apply_all
from heedful.search.settings import PAPER_SEARCH, SearchOptions
from heedful.search.step import COMPACT_SHARE, NextLogProbabilities, start_decoding

Choose = Callable[[Tensor, Tensor, int], Tensor]
"""
Maps log-probabilities (rows, vocabulary), the walk of each row and the step to tokens (rows,).

A walk is the decoding of one hypothesis; its index stays the same when rows are removed.
"""


def decode_stepwise(
    next_log_probabilities: NextLogProbabilities,
    state: DecodingState,
    tokens: Int[Tensor, " walks"],
    limits: Sequence[int],
    choose: Choose,
    *,
    end_token: int,
    penalty: LengthPenalty,
    rules: Sequence[DecodingRule] = (),
    samples: int = 1,
    observer: SearchObserver | None = None,
) -> list[Hypothesis]:
    """
    Decode token by token with a choice function until all rows have ended.

    `limits`: maximum number of target tokens of each row, not counting the end symbol. `samples`:
    number of rows of each sentence.

    Finished rows are removed once they make up a quarter of the batch, so later steps cost less.
    """
    live = torch.arange(len(limits), device=tokens.device)  # (rows,), indices of walks
    prefixes = tokens.new_empty(len(limits), 0)  # (rows, length)
    written: list[list[int]] = [[] for _ in limits]
    scores: list[list[float]] = [[] for _ in limits]
    ended = [False] * len(limits)
    done = [False] * len(limits)
    while len(live):
        # 1. choose one token for each row
        scores_now, state = next_log_probabilities(tokens, state)  # (rows, vocabulary)
        scores_now = apply_all(rules, scores_now, prefixes, live // samples)
        tokens = choose(scores_now, live, prefixes.size(1))  # (rows,)
        chosen = scores_now.gather(1, tokens.unsqueeze(1)).squeeze(1)  # (rows,)

        # 2. append the token; a walk at its limit accepts only an end symbol
        steps = zip(live.tolist(), tokens.tolist(), chosen.tolist(), strict=True)
        for index, token, score in steps:
            if done[index]:
                continue
            ended[index] = token == end_token
            done[index] = ended[index] or len(written[index]) == limits[index]
            if ended[index]:
                scores[index].append(score)
            elif not done[index]:
                written[index].append(token)
                scores[index].append(score)
            if observer is not None:
                text = (*written[index], token) if ended[index] else tuple(written[index])
                where = (*divmod(index, samples), prefixes.size(1) + 1)
                total = sum(scores[index], 0.0)
                observer(_snapshot(where, text, total, penalty, ended[index], done[index]))
        prefixes = torch.cat([prefixes, tokens.unsqueeze(1)], dim=1)

        # 3. drop finished rows once they are a quarter of the batch
        open_rows = [row for row, index in enumerate(live.tolist()) if not done[index]]
        if len(open_rows) <= (1 - COMPACT_SHARE) * len(live):
            going = torch.tensor(open_rows, dtype=torch.long, device=live.device)
            state = state.select(going, going)
            live, tokens, prefixes = live[going], tokens[going], prefixes[going]
    return [
        Hypothesis(tuple(t), tuple(s), sum(s) / penalty.divisor(max(1, len(s))), e)
        for t, s, e in zip(written, scores, ended, strict=True)
    ]


def _snapshot(
    where: tuple[int, int, int],
    text: tuple[int, ...],
    total: float,
    penalty: LengthPenalty,
    ended: bool,
    done: bool,
) -> Snapshot:
    """Describe one hypothesis for the observer; `where`: sentence, sample and step."""
    seen = (HypothesisView(0, text, total, total / penalty.divisor(max(1, len(text)))),)
    sentence, group, step = where
    return Snapshot(
        sentence,
        step,
        open=() if done else seen,
        ended=seen if ended else (),
        cut=seen if done and not ended else (),
        group=group,
        done=done,
    )


@torch.inference_mode()
def greedy_search(
    model: Seq2Seq,
    source: Int[Tensor, "sentences source"],
    limits: Sequence[int],
    settings: SearchOptions = PAPER_SEARCH,
    rules: Sequence[DecodingRule] = (),
    observer: SearchObserver | None = None,
) -> list[Hypothesis]:
    """
    Translate a batch of sentences with the most probable token at each step.

    Beam search with one open hypothesis differs: it continues after the first end symbol while a
    longer hypothesis may score better. Validation uses greedy search, which is several times
    cheaper than beam search. Of the settings, only the length penalty applies.
    """
    return decode_stepwise(
        *start_decoding(model, source),
        limits,
        _most_probable,
        end_token=model.end_token,
        penalty=settings.penalty,
        rules=rules,
        observer=observer,
    )


def _most_probable(scores: Tensor, walks: Tensor, step: int) -> Tensor:
    """Choose the most probable token; ignore the walk and the step."""
    del walks, step
    return scores.argmax(dim=1)
