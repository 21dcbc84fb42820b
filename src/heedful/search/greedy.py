"""Greedy search: always the most probable token."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.model.seq2seq import Seq2Seq
from heedful.search.hypothesis import Hypothesis
from heedful.search.length import LengthPenalty


@torch.inference_mode()
def greedy_search(
    model: Seq2Seq,
    source: Int[Tensor, "sentences source"],
    limits: Sequence[int],
    *,
    penalty: LengthPenalty,
    vocabulary: int | None = None,
    forbidden: Sequence[int] = (),
) -> list[Hypothesis]:
    """
    Translate a batch of sentences by the most probable token at each step.

    Parameters
    ----------
    model : Seq2Seq
        In evaluation mode.
    source : Tensor of int, shape (sentences, source)
        Padded ids, on the model's device.
    limits : sequence of int
        Most target tokens of each sentence, the end symbol not counted.
    penalty : LengthPenalty
        Only for the score that is reported; greedy search does not compare lengths.
    vocabulary : int, optional
        Ids from here on are filling and forbidden.
    forbidden : sequence of int, optional
        Ids that must not be generated.

    Returns
    -------
    list of Hypothesis
        One for each sentence.

    Notes
    -----
    Not beam search with one hypothesis: that goes on past a first end while something longer may
    score better. Validation uses this; it is several times cheaper.
    """
    count, device = len(limits), source.device
    state = model.start(model.encode(source))
    tokens = torch.full((count,), model.start_token, device=device)
    remaining = torch.tensor(limits, device=device)
    live = torch.arange(count, device=device)
    written: list[list[int]] = [[] for _ in limits]
    scores: list[list[float]] = [[] for _ in limits]
    ended = [False] * count
    while len(live):
        states, state = model.step(state, tokens)
        log_probabilities = torch.log_softmax(model.project(states).float(), dim=-1)
        log_probabilities[:, list(forbidden)] = float("-inf")
        if vocabulary is not None:
            log_probabilities[:, vocabulary:] = float("-inf")
        best, tokens = log_probabilities.max(dim=-1)
        over = (tokens == model.end_token) | (remaining[live] == 0)
        for index, token, score in zip(live.tolist(), tokens.tolist(), best.tolist(), strict=True):
            if token == model.end_token:
                scores[index].append(score)
                ended[index] = True
            elif len(written[index]) < limits[index]:
                written[index].append(token)
                scores[index].append(score)
        remaining[live] -= 1
        if bool(over.any()):
            going = (~over).nonzero().squeeze(1)
            state = state.select(going, going)
            live, tokens = live[going], tokens[going]
    return [
        Hypothesis(tuple(t), tuple(s), sum(s) / penalty.divisor(max(1, len(s))), e)
        for t, s, e in zip(written, scores, ended, strict=True)
    ]
