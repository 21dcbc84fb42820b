"""
What every search asks a model: how probable each token is, given what is written so far.

The best continuations of each sentence: the first of the steps of a beam search.

`expand` is plain beam search's choice; other searches (`heedful.search.diverse`,
`heedful.search.constrained`) choose in their own way and end in the same `Candidates`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.model.inference.native.layers import best_of_rows
from heedful.model.seq2seq import DecodingState, Seq2Seq

NextLogProbabilities = Callable[[Tensor, DecodingState], tuple[Tensor, DecodingState]]
"""From newest tokens (rows,) and a state to log-probabilities (rows, vocabulary) and a state."""

# What is done leaves the batch when it is so large a part of it: leaving copies what is kept of
# all that stay, and every size of a batch has products of its own to prepare.
COMPACT_SHARE = 1 / 4


def start_decoding(
    model: Seq2Seq, source: Int[Tensor, "sentences source"]
) -> tuple[NextLogProbabilities, DecodingState, Int[Tensor, " sentences"]]:
    """
    Read the source and stand before the first target token.

    Parameters
    ----------
    model : Seq2Seq
        In evaluation mode.
    source : Tensor of int, shape (sentences, source)
        Padded ids, on the model's device.

    Returns
    -------
    next_log_probabilities : callable
        From the newest token of each row and the state to the log-probabilities of the next token
        in fp32, shape (rows, vocabulary), and the next state.
    state : DecodingState
        Before the first token, one row a sentence.
    tokens : Tensor of int, shape (sentences,)
        What stands before the first token.

    Notes
    -----
    The only place where a search meets the model, so tests can put tables of probabilities here.
    """
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
    """
    Hold the best continuations of each sentence, best first.

    Attributes
    ----------
    totals : Tensor of float, shape (sentences, candidates)
        What the hypotheses are compared by, their log-probability in plain beam search.
    log_probabilities : Tensor of float, shape (sentences, candidates)
        Of the new token, as the model says.
    parents : Tensor of int, shape (sentences, candidates)
        Which open hypothesis of the sentence is continued.
    tokens : Tensor of int, shape (sentences, candidates)
        The new token.

    Notes
    -----
    2 x beam candidates: even if half of them end, `beam` stay open.
    """

    totals: Float[Tensor, "sentences candidates"]
    log_probabilities: Float[Tensor, "sentences candidates"]
    parents: Int[Tensor, "sentences candidates"]
    tokens: Int[Tensor, "sentences candidates"]


# Tokens whose maximum is looked at first; two rounds over about 300 numbers for 8,000 tokens.
_BLOCK = 32

Expand = Callable[[Tensor, Tensor, Tensor, Tensor], Candidates]
"""
From totals (sentences, width), log-probabilities (sentences, width, vocabulary), the tokens so far
(rows, length) and the sentence of each row (rows,) to the best continuations.
"""


def expand(
    totals: Float[Tensor, "sentences width"],
    next_log_probabilities: Float[Tensor, "sentences width vocabulary"],
    candidates: int,
) -> Candidates:
    """
    Find the best one-token continuations of each sentence.

    Parameters
    ----------
    totals : Tensor of float, shape (sentences, width)
        Log-probabilities of the open hypotheses.
    next_log_probabilities : Tensor of float, shape (sentences, width, vocabulary)
        Of each possible next token; minus infinity where it is forbidden.
    candidates : int
        How many to keep.

    Returns
    -------
    Candidates
        Best first.

    Notes
    -----
    The totals are compared without a length penalty: all candidates are equally long.
    """
    sentences, width, vocabulary = next_log_probabilities.shape
    scores, tokens = best_of_each(next_log_probabilities.flatten(0, 1), min(candidates, vocabulary))
    each = scores.view(sentences, width, -1)
    sums = (totals.unsqueeze(2) + each).flatten(1)
    best, where = sums.topk(min(candidates, sums.size(1)), dim=1)
    parents = where // each.size(2)
    tokens = tokens.view(sentences, -1).gather(1, where)
    return Candidates(best, each.flatten(1).gather(1, where), parents, tokens)


def best_of_each(
    scores: Float[Tensor, "rows vocabulary"], wanted: int
) -> tuple[Float[Tensor, "rows wanted"], Int[Tensor, "rows wanted"]]:
    """
    Find the best tokens of each row.

    Parameters
    ----------
    scores : Tensor of float, shape (rows, vocabulary)
        Of each possible token.
    wanted : int
        How many.

    Returns
    -------
    scores : Tensor of float, shape (rows, wanted)
        Best first.
    tokens : Tensor of int, shape (rows, wanted)
        Which they are.

    Notes
    -----
    `torch.topk` sorts slowly on a processor; compiled functions are there for it, where they can be
    had (`heedful.model.inference.native`). The best n of a row stand in those n of its blocks
    whose maxima are largest, so it needs to look at these alone.
    """
    rows, vocabulary = scores.shape
    if scores.device.type == "cpu" and scores.dtype == torch.float32:
        found = best_of_rows(scores, wanted)
        if found is not None:
            return found
    size = math.gcd(vocabulary, _BLOCK)
    blocks = vocabulary // size
    if scores.device.type != "cpu" or size == 1 or blocks <= 2 * wanted:
        best = scores.topk(wanted, dim=1)
        return best.values, best.indices
    cut = scores.view(rows, blocks, size)
    chosen = cut.amax(dim=2).topk(wanted, dim=1, sorted=False).indices
    first = torch.arange(0, rows * blocks, blocks).unsqueeze(1)
    few = cut.view(-1, size).index_select(0, (first + chosen).flatten()).view(rows, -1)
    values, where = few.topk(wanted, dim=1)
    return values, chosen.gather(1, where // size) * size + where % size


def pick(
    totals: Float[Tensor, "sentences width"],
    next_log_probabilities: Float[Tensor, "sentences width vocabulary"],
    where: Int[Tensor, "sentences candidates"],
) -> Candidates:
    """
    Look up chosen continuations.

    Parameters
    ----------
    totals : Tensor of float, shape (sentences, width)
        Of the open hypotheses.
    next_log_probabilities : Tensor of float, shape (sentences, width, vocabulary)
        Of each possible next token.
    where : Tensor of int, shape (sentences, candidates)
        The choice, as hypothesis x vocabulary + token.

    Returns
    -------
    Candidates
        In the order of `where`.

    Notes
    -----
    Every kind of beam search ends its own choice here.
    """
    vocabulary = next_log_probabilities.size(2)
    each = next_log_probabilities.flatten(1).gather(1, where)
    parents = where // vocabulary
    return Candidates(totals.gather(1, parents) + each, each, parents, where % vocabulary)
