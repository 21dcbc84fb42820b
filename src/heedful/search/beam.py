"""
Beam search, in steps that can each be tested with five numbers.

::

    extend   every open hypothesis by every token; keep the 2 x beam best extensions
    finish   those among the best that end in the end symbol are complete
    prune    the `beam` best of those without it stay open
    stop     a sentence is done when no open hypothesis can win any more

How many of the best count for `finish` is where searches differ: `beam` of them in most toolkits,
2 x beam in the authors' code. The paper does not say.

Many sentences are searched together. A sentence that is done leaves the batch, so the work shrinks
with it. Nothing here knows the architecture: the model is asked through
`heedful.model.seq2seq`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.model.seq2seq import Seq2Seq, State
from heedful.search.hypothesis import Hypothesis
from heedful.search.length import LengthPenalty

NextLogProbabilities = Callable[[Tensor, State], tuple[Tensor, State]]


@dataclass(frozen=True)
class Extensions:
    """
    Hold the best continuations of each sentence, best first.

    Attributes
    ----------
    totals : Tensor of float, shape (sentences, candidates)
        Log-probability of the whole hypothesis.
    parents : Tensor of int, shape (sentences, candidates)
        Which open hypothesis of the sentence is continued.
    tokens : Tensor of int, shape (sentences, candidates)
        The new token.

    Notes
    -----
    2 x beam candidates: even if half of them end, `beam` stay open.
    """

    totals: Float[Tensor, "sentences candidates"]
    parents: Int[Tensor, "sentences candidates"]
    tokens: Int[Tensor, "sentences candidates"]


def extend(
    totals: Float[Tensor, "sentences width"],
    next_log_probabilities: Float[Tensor, "sentences width vocabulary"],
    candidates: int,
) -> Extensions:
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
    Extensions
        Best first.

    Notes
    -----
    The totals are compared without a length penalty: all candidates are equally long.
    """
    sentences, width, vocabulary = next_log_probabilities.shape
    everything = (totals.unsqueeze(2) + next_log_probabilities).view(sentences, width * vocabulary)
    best, where = everything.topk(min(candidates, width * vocabulary), dim=1)
    return Extensions(best, where // vocabulary, where % vocabulary)


def prune(ended: Bool[Tensor, "sentences candidates"], beam: int) -> Int[Tensor, "sentences beam"]:
    """
    Choose the candidates that stay open.

    Parameters
    ----------
    ended : Tensor of bool, shape (sentences, candidates)
        Which candidates, best first, are complete.
    beam : int
        How many stay.

    Returns
    -------
    Tensor of int, shape (sentences, beam)
        Columns of the best candidates that are not complete, best first.

    Notes
    -----
    A stable sort by “complete or not” keeps the order of the scores. Each open hypothesis has one
    extension that ends, so 2 x beam candidates leave `beam` others unless the vocabulary is tiny.
    """
    return ended.int().sort(dim=1, stable=True).indices[:, :beam]


def can_still_win(
    best_open: float,
    limit: int,
    penalty: LengthPenalty,
    complete: Sequence[Hypothesis],
    wanted: int,
) -> bool:
    """
    Decide whether an open hypothesis may still enter the list of the best.

    Parameters
    ----------
    best_open : float
        Log-probability of the best open hypothesis.
    limit : int
        Greatest length it may reach, the end symbol included.
    penalty : LengthPenalty
        Never falls with the length.
    complete : sequence of Hypothesis
        Complete hypotheses so far, best first.
    wanted : int
        How many will be returned.

    Returns
    -------
    bool
        False if none can.

    Notes
    -----
    Log-probabilities only fall, so the best that can become of it is its present one divided by
    the largest divisor.
    """
    if best_open == float("-inf"):
        return False
    if len(complete) < wanted:
        return True
    return best_open / penalty.divisor(limit) > complete[wanted - 1].score


@dataclass
class _Sentence:
    """The open hypotheses of one sentence as token lists, and its complete ones, best first."""

    index: int
    limit: int
    open: list[tuple[list[int], list[float]]] = field(default_factory=lambda: [([], [])])
    complete: list[Hypothesis] = field(default_factory=list)

    def finish(self, hypothesis: Hypothesis, keep: int) -> None:
        """Sort a complete hypothesis in and keep the best few."""
        self.complete.append(hypothesis)
        self.complete.sort(key=lambda h: -h.score)
        del self.complete[keep:]


@torch.inference_mode()
def beam_search(
    model: Seq2Seq,
    source: Int[Tensor, "sentences source"],
    limits: Sequence[int],
    *,
    beam: int = 4,
    penalty: LengthPenalty,
    n_best: int = 1,
    finish_among: int | None = None,
    vocabulary: int | None = None,
    forbidden: Sequence[int] = (),
) -> list[list[Hypothesis]]:
    """
    Translate a batch of sentences.

    Parameters
    ----------
    model : Seq2Seq
        In evaluation mode.
    source : Tensor of int, shape (sentences, source)
        Padded ids, on the model's device.
    limits : sequence of int
        Most target tokens of each sentence, the end symbol not counted.
    beam : int, default 4
        Open hypotheses a sentence.
    penalty : LengthPenalty
        Orders complete hypotheses of different lengths.
    n_best : int, default 1
        Hypotheses to return a sentence, at most `beam`.
    finish_among : int, optional
        An end counts if it is among so many best candidates of a step; `beam` when absent.
    vocabulary : int, optional
        Ids from here on are filling and forbidden.
    forbidden : sequence of int, optional
        Ids that must not be generated, such as padding and the start symbol.

    Returns
    -------
    list of list of Hypothesis
        For each sentence its best hypotheses, best first.

    Notes
    -----
    Section 6.1: beam 4, alpha 0.6, stop early when possible. A hypothesis at its limit ends if the
    end symbol is among its best continuations; if not it is cut as it is, and counts only where
    too few have ended.
    """
    state = model.start(model.encode(source))
    tokens = torch.full((len(limits),), model.start_token, device=source.device)

    def next_log_probabilities(tokens: Tensor, state: State) -> tuple[Tensor, State]:
        states, state = model.step(state, tokens)
        scores = torch.log_softmax(model.project(states).float(), dim=-1)
        scores[:, list(forbidden)] = float("-inf")
        if vocabulary is not None:
            scores[:, vocabulary:] = float("-inf")
        return scores, state

    return search(
        next_log_probabilities,
        state,
        tokens,
        limits,
        end_token=model.end_token,
        beam=beam,
        penalty=penalty,
        n_best=n_best,
        finish_among=finish_among,
    )


def search(
    next_log_probabilities: NextLogProbabilities,
    state: State,
    tokens: Int[Tensor, " sentences"],
    limits: Sequence[int],
    *,
    end_token: int,
    beam: int,
    penalty: LengthPenalty,
    n_best: int = 1,
    finish_among: int | None = None,
) -> list[list[Hypothesis]]:
    """
    Run the loop over the steps, whatever the probabilities come from.

    Parameters
    ----------
    next_log_probabilities : callable
        From the newest tokens (rows,) and the state to log-probabilities (rows, vocabulary) and
        the next state.
    state : State
        Before the first token, one row a sentence.
    tokens : Tensor of int, shape (sentences,)
        What stands before the first token.
    limits : sequence of int
        Most target tokens of each sentence, the end symbol not counted.
    end_token : int
        The end symbol.
    beam : int
        Open hypotheses a sentence.
    penalty : LengthPenalty
        Orders complete hypotheses of different lengths.
    n_best : int, default 1
        Hypotheses to return a sentence.
    finish_among : int, optional
        An end counts if it is among so many best candidates of a step; `beam` when absent.

    Returns
    -------
    list of list of Hypothesis
        For each sentence its best hypotheses, best first.

    Notes
    -----
    Tests drive it with tables of probabilities and compare it with an exhaustive search.
    """
    device = tokens.device
    running = [_Sentence(index, limit) for index, limit in enumerate(limits)]
    results: list[list[Hypothesis]] = [[] for _ in limits]
    totals = torch.zeros(len(limits), 1, device=device)
    length = 0
    while running:
        scores, state = next_log_probabilities(tokens, state)
        width = totals.size(1)
        scores = scores.view(len(running), width, -1)
        found = extend(totals, scores, 2 * beam)
        ended = found.tokens == end_token
        columns = prune(ended, beam)
        # Where fewer than `beam` are left without an end, the rest of the rows is dead.
        totals = found.totals.masked_fill(ended, float("-inf")).gather(1, columns)
        ended[:, finish_among or beam :] = False
        length += 1
        staying = _advance(running, found, ended, columns, totals, length, penalty, n_best)
        for row, sentence in enumerate(running):
            if row not in staying:
                results[sentence.index] = sentence.complete[:n_best]
        if not staying:
            break
        kept = torch.tensor(sorted(staying), device=device)
        parents = found.parents.gather(1, columns)
        rows = (torch.arange(len(running), device=device)[:, None] * width + parents)[kept]
        all_stay = len(staying) == len(running)
        state = state.select(rows.flatten(), None if all_stay else kept)
        totals = totals[kept]
        tokens = found.tokens.gather(1, columns)[kept].flatten()
        running = [running[row] for row in sorted(staying)]
    return results


def _advance(
    running: list[_Sentence],
    found: Extensions,
    ended: Tensor,
    columns: Tensor,
    open_totals: Tensor,
    length: int,
    penalty: LengthPenalty,
    n_best: int,
) -> set[int]:
    """Write the step into the sentences' lists; return the rows that go on."""
    totals, parents, tokens = found.totals.tolist(), found.parents.tolist(), found.tokens.tolist()
    ends, kept, open_rows = ended.tolist(), columns.tolist(), open_totals.tolist()
    staying = set()
    for row, sentence in enumerate(running):
        before = sentence.open
        for column, total in enumerate(totals[row]):
            if ends[row][column] and total > float("-inf"):
                past, log_probabilities = before[parents[row][column]]
                last = total - sum(log_probabilities)
                done = Hypothesis(
                    tuple(past),
                    (*log_probabilities, last),
                    total / penalty.divisor(length),
                    ended=True,
                )
                sentence.finish(done, n_best)
        sentence.open = []
        for column, total in zip(kept[row], open_rows[row], strict=True):
            past, log_probabilities = before[parents[row][column]]
            last = total - sum(log_probabilities)
            sentence.open.append(([*past, tokens[row][column]], [*log_probabilities, last]))
        if length > sentence.limit:
            _cut(sentence, before, penalty, n_best)
        elif can_still_win(
            max(open_rows[row]), sentence.limit + 1, penalty, sentence.complete, n_best
        ):
            staying.add(row)
    return staying


def _cut(
    sentence: _Sentence,
    open_before: list[tuple[list[int], list[float]]],
    penalty: LengthPenalty,
    n_best: int,
) -> None:
    """Fill the list up with hypotheses that reached the limit without an end."""
    ended = {hypothesis.tokens for hypothesis in sentence.complete}
    for past, log_probabilities in open_before:
        total = sum(log_probabilities)
        missing = len(sentence.complete) < n_best
        if missing and tuple(past) not in ended and total > float("-inf"):
            score = total / penalty.divisor(max(1, len(past)))
            cut = Hypothesis(tuple(past), tuple(log_probabilities), score, ended=False)
            sentence.complete.append(cut)
