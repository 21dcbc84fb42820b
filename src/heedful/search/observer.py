"""
What a search shows of itself to whoever watches it, one sentence and one step at a time.

::

    open      goes on in the next step
    ended     has just come to the end symbol, and counts
    cut       stops at the limit without an end symbol, as it is
    dropped   not followed any further, and why

A search that nobody watches makes none of this. No torch here: what is shown is numbers and tuples.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from heedful.search.length import LengthPenalty

DropReason = Literal["", "beam", "end", "limit", "win", "full"]
"""
Why a hypothesis is dropped: others filled the beam; it ended, but not among the best candidates;
it was at its limit; no open hypothesis could win any more; enough had ended. Empty if it is not.
"""


@dataclass(frozen=True)
class HypothesisView:
    """
    Show one hypothesis at one step.

    Attributes
    ----------
    parent : int
        Which of the open hypotheses of the step before it continues; 0 at the first step.
    tokens : tuple of int
        All of its tokens, the newest last; that is the end symbol where it has ended.
    log_probability : float
        Natural logarithm of the probability of all its tokens.
    score : float
        `log_probability` divided by the length penalty, were it to end here.
    why : str, default ''
        Why it is dropped, see `DropReason`.

    Notes
    -----
    What a hypothesis pays to be different from others (`heedful.search.diverse`) is not in its
    log-probability.
    """

    parent: int
    tokens: tuple[int, ...]
    log_probability: float
    score: float
    why: DropReason = ""


@dataclass(frozen=True)
class Snapshot:
    """
    Show one sentence after one step.

    Attributes
    ----------
    sentence : int
        Its row in what was asked.
    step : int
        How many tokens its hypotheses have, counted from 1.
    open : tuple of HypothesisView
        Best first; the `parent` of the next step counts them. Empty when the sentence is done.
    ended : tuple of HypothesisView, default ()
        Best first. They count, though better ones may come.
    cut : tuple of HypothesisView, default ()
        Open hypotheses of the step before that stop as they are; the token of this step is not
        theirs.
    dropped : tuple of HypothesisView, default ()
        Best first; those that came nearest to staying, not all there are.
    group : int, default 0
        Which of the groups of its beam, or which of its samples.
    done : bool, default False
        Whether nothing follows for this group.

    Notes
    -----
    Plain beam search weighs twice as many candidates as the beam is wide, and shows all of them.
    """

    sentence: int
    step: int
    open: tuple[HypothesisView, ...]
    ended: tuple[HypothesisView, ...] = ()
    cut: tuple[HypothesisView, ...] = ()
    dropped: tuple[HypothesisView, ...] = ()
    group: int = 0
    done: bool = False


SearchObserver = Callable[[Snapshot], None]
"""
Called after each step, once for each sentence (and group) that is not done.

In the thread that searches, which waits; what it raises ends the search.
"""


class Candidate(NamedTuple):
    """
    A continuation that a step of a beam search has weighed.

    Attributes
    ----------
    parent : int
        Which open hypothesis it continues.
    log_probability : float
        Of its token.
    token : int
        The new one.

    Notes
    -----
    As `heedful.search.step.Candidates` holds them for all sentences at once.
    """

    parent: int
    log_probability: float
    token: int


@dataclass(frozen=True)
class StepDecision:
    """
    Know what a step of a beam search has decided for one sentence.

    Attributes
    ----------
    sentence, group, step : int
        As in `Snapshot`.
    open_before : sequence of tuple of (tokens, log-probability)
        The open hypotheses of the step before; the dead have minus infinity.
    candidates : sequence of Candidate
        Best first.
    finished : frozenset of int
        Which of them are complete and count.
    kept : frozenset of int
        Which of them take a place in the beam.
    cut : frozenset of int
        Which of the past ones stop as they are.
    over : str
        Why those in the beam are dropped, if they are.

    Notes
    -----
    Of Python's own numbers, so that it can be tested without a model.
    """

    sentence: int
    group: int
    step: int
    open_before: Sequence[tuple[Sequence[int], float]]
    candidates: Sequence[Candidate]
    finished: frozenset[int]
    kept: frozenset[int]
    cut: frozenset[int]
    over: DropReason

    def snapshot(self, end_token: int, penalty: LengthPenalty) -> Snapshot:
        """
        Sort the candidates by what becomes of them.

        Parameters
        ----------
        end_token : int
            The end symbol.
        penalty : LengthPenalty
            Of the search.

        Returns
        -------
        Snapshot
            Without the dead.

        Notes
        -----
        A candidate is dead if a rule forbids it, or if what it continues is.
        """
        places: dict[str, list[HypothesisView]] = {"open": [], "ended": [], "dropped": []}
        divisor, shorter = (penalty.divisor(max(1, self.step - less)) for less in (0, 1))
        alive = itertools.accumulate(
            (total > float("-inf") for _, total in self.open_before), initial=0
        )
        places_before = list(alive)
        for column, candidate in enumerate(self.candidates):
            tokens, before = self.open_before[candidate.parent]
            total = before + candidate.log_probability
            if not total > float("-inf"):
                continue
            place, why = self._fate(column, candidate.token == end_token)
            text = (*tokens, candidate.token)
            seen = HypothesisView(
                places_before[candidate.parent], text, total, total / divisor, why
            )
            places[place].append(seen)
        cut = tuple(
            HypothesisView(places_before[index], tuple(tokens), total, total / shorter)
            for index, (tokens, total) in enumerate(self.open_before)
            if index in self.cut
        )
        return Snapshot(
            self.sentence,
            self.step,
            tuple(places["open"]),
            tuple(places["ended"]),
            cut,
            tuple(places["dropped"]),
            self.group,
            bool(self.over),
        )

    def _fate(self, column: int, ends: bool) -> tuple[str, DropReason]:
        """Tell what becomes of one candidate."""
        if column in self.finished:
            return "ended", ""
        if ends:
            return "dropped", "end"
        if column not in self.kept:
            return "dropped", "beam"
        return ("dropped", self.over) if self.over else ("open", "")


def offset_sentence(observer: SearchObserver, rows: Sequence[int]) -> SearchObserver:
    """
    Name sentences by their rows in a larger text.

    Parameters
    ----------
    observer : callable
        Knows the text.
    rows : sequence of int
        Of each sentence of a batch, its row in the text.

    Returns
    -------
    callable
        Knows the batch.

    Notes
    -----
    Whoever asks for many sentences does not see how they are put into batches.
    """

    def named(snapshot: Snapshot) -> None:
        observer(replace(snapshot, sentence=rows[snapshot.sentence]))

    return named
