"""
One step of a search: next-token log-probabilities, and the best continuations of a beam.

`extend` chooses the continuations in plain beam search. Other searches (`heedful.search.diverse`,
`heedful.search.constrained`) choose differently, but also return `Candidates`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.kernels.api import best_continuations, best_of_rows
from heedful.model.contracts import DecodingState, Seq2Seq

Totals = Float[Tensor, "beams width"]
Scores = Float[Tensor, "beams width vocabulary"]

NextLogProbabilities = Callable[[Tensor, DecodingState], tuple[Tensor, DecodingState]]
"""Maps newest tokens (rows,) and state to log-probabilities (rows, vocabulary) and next state."""

# Finished sentences are removed once they make up this share of the batch. Their removal copies the
# cache, and each new batch size makes oneDNN compile new kernels. The share was chosen by hand: a
# smaller share copies more often, and a larger share computes more unnecessary rows.
COMPACT_SHARE = 1 / 4


def start_decoding(
    model: Seq2Seq, source: Int[Tensor, "sentences source"]
) -> tuple[NextLogProbabilities, DecodingState, Int[Tensor, " sentences"]]:
    """Encode the source and return the function, state and tokens with which a search starts."""
    # Searches call the model only here, so tests can pass tables of probabilities instead.
    state = model.start(model.encode(source))
    tokens = torch.full((len(source),), model.start_token, device=source.device)

    def next_log_probabilities(
        tokens: Tensor, state: DecodingState
    ) -> tuple[Tensor, DecodingState]:
        states, state = model.step(state, tokens)
        return model.log_probabilities(states), state

    return next_log_probabilities, state, tokens


@dataclass(frozen=True)
class Candidates:
    """The best 2 x beam continuations of each beam, best first; `beam` of them stay open."""

    totals: Float[Tensor, "beams candidates"]
    """Sort keys of the hypotheses: their log-probabilities in plain beam search."""
    log_probabilities: Float[Tensor, "beams candidates"]
    """The model's log-probability of the new token."""
    parents: Int[Tensor, "beams candidates"]
    """Index in the beam of the open hypothesis that is continued."""
    tokens: Int[Tensor, "beams candidates"]
    """The new token."""


# Tokens per block. Block maxima are compared first, then the tokens of the best blocks. For a
# vocabulary of 8,000 and the 8 best tokens, each round compares about 250 numbers.
_BLOCK = 32

Extend = Callable[[Tensor, Tensor, Tensor, Tensor], Candidates]
"""
Maps totals (beams, width), log-probabilities (beams, width, vocabulary), the tokens so far (rows,
length) and the sentence of each row (rows,) to the best continuations.
"""


def extend(totals: Totals, next_log_probabilities: Scores, candidates: int) -> Candidates:
    """
    Find the best one-token continuations of each beam; minus infinity marks forbidden tokens.

    Totals are compared without a length penalty, because all candidates have the same length.
    """
    is_fp32 = totals.dtype == next_log_probabilities.dtype == torch.float32
    if is_fp32 and next_log_probabilities.is_cpu:  # totals are on the CPU too
        best = best_continuations(totals, next_log_probabilities, candidates)
        if best is not None:
            return Candidates(*best)
    return extend_plainly(totals, next_log_probabilities, candidates)


def extend_plainly(totals: Totals, next_log_probabilities: Scores, candidates: int) -> Candidates:
    """Find the best continuations with torch functions."""
    beams, width, vocabulary = next_log_probabilities.shape
    scores, tokens = best_of_each(next_log_probabilities.flatten(0, 1), min(candidates, vocabulary))
    log_probabilities = scores.view(beams, width, -1)  # (beams, width, candidates)
    sums = (totals.unsqueeze(2) + log_probabilities).flatten(1)  # (beams, width * candidates)
    best, where = sums.topk(min(candidates, sums.size(1)), dim=1)  # (beams, candidates)
    parents = where // log_probabilities.size(2)
    tokens = tokens.view(beams, -1).gather(1, where)  # (beams, candidates)
    return Candidates(best, log_probabilities.flatten(1).gather(1, where), parents, tokens)


def best_of_each(
    scores: Float[Tensor, "rows vocabulary"], wanted: int
) -> tuple[Float[Tensor, "rows wanted"], Int[Tensor, "rows wanted"]]:
    """
    Find the best tokens of each row.

    `torch.topk` is slow on a CPU, so compiled functions replace it if available
    (`heedful.kernels.native`). The best n tokens of a row are in the n blocks with the largest
    maxima, so only these blocks are searched.
    """
    rows, vocabulary = scores.shape
    if scores.device.type == "cpu" and scores.dtype == torch.float32:
        compiled = best_of_rows(scores, wanted)
        if compiled is not None:
            return compiled
    size = math.gcd(vocabulary, _BLOCK)
    blocks = vocabulary // size
    if scores.device.type != "cpu" or size == 1 or blocks <= 2 * wanted:
        best = scores.topk(wanted, dim=1)
        return best.values, best.indices
    cut = scores.view(rows, blocks, size)
    chosen = cut.amax(dim=2).topk(wanted, dim=1, sorted=False).indices  # (rows, wanted)
    first = torch.arange(0, rows * blocks, blocks).unsqueeze(1)  # (rows, 1)
    few = cut.view(-1, size).index_select(0, (first + chosen).flatten()).view(rows, -1)
    values, where = few.topk(wanted, dim=1)  # (rows, wanted), columns of `few`
    return values, chosen.gather(1, where // size) * size + where % size


def pick(
    totals: Totals,
    next_log_probabilities: Scores,
    where: Int[Tensor, "beams candidates"],
) -> Candidates:
    """Gather the chosen continuations."""
    vocabulary = next_log_probabilities.size(2)
    log_probabilities = next_log_probabilities.flatten(1).gather(1, where)  # (beams, candidates)
    parents = where // vocabulary
    return Candidates(
        totals.gather(1, parents) + log_probabilities,
        log_probabilities,
        parents,
        where % vocabulary,
    )
