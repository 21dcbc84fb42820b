"""
The observer of a search, and the views of hypotheses that it receives after each step.

::

    open      continues in the next step
    ended     has just reached the end symbol, and counts as complete
    cut       stops at the limit without an end symbol
    dropped   does not continue; the view has the reason

A search without an observer makes no views. The module does not import torch: views contain only
numbers, strings and tuples.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from heedful.search.length import LengthPenalty

DropReason = Literal["", "beam", "end", "limit", "win", "full"]
"""
The reason why a hypothesis is dropped; empty if it is not dropped. ``beam``: better hypotheses
filled the beam. ``end``: it ended, but not among the best candidates. ``limit``: it was at its
limit. ``win``: no open hypothesis could win any more. ``full``: enough hypotheses had ended.
"""


@dataclass(frozen=True)
class HypothesisView:
    """A hypothesis at one step; its log-probability does not include the diversity cost."""

    parent: int
    """Index of the parent among the open hypotheses of the previous step; 0 at the first step."""
    tokens: tuple[int, ...]
    """All tokens, the newest last; if the hypothesis has ended, the last is the end symbol."""
    log_probability: float
    """Natural logarithm of the probability of all tokens."""
    score: float
    """`log_probability` divided by the length penalty of this step, plus any coverage penalty."""
    why: DropReason = ""
    """Reason why the hypothesis is dropped (`DropReason`)."""


@dataclass(frozen=True)
class Snapshot:
    """One sentence after one step, as the observer sees it."""

    sentence: int
    """Index of the sentence in the request."""
    step: int
    """Number of the step, from 1; each open hypothesis has as many tokens."""
    open: tuple[HypothesisView, ...]
    """Open hypotheses, best first; the next step's `parent` refers to these. Empty if `done`."""
    ended: tuple[HypothesisView, ...] = ()
    """Hypotheses that ended in this step, best first; later steps may find better hypotheses."""
    cut: tuple[HypothesisView, ...] = ()
    """Hypotheses cut at the limit, as they were before this step, without a token of this step."""
    dropped: tuple[HypothesisView, ...] = ()
    """Dropped hypotheses that were among the candidates, best first."""
    group: int = 0
    """Index of the group or sample in the sentence."""
    done: bool = False
    """Whether this is the last step of the group."""


SearchObserver = Callable[[Snapshot], None]
"""
Called after each step, once for each sentence (and group) that was not done.

It runs in the thread of the search, and an exception that it raises ends the search.
"""


class Candidate(NamedTuple):
    """A candidate continuation of a hypothesis in a beam search step."""

    parent: int
    """Index of the open hypothesis that the candidate continues."""
    log_probability: float
    """Log-probability of the new token."""
    token: int
    """The new token."""


@dataclass(frozen=True)
class StepDecision:
    """The decisions of a beam search step for one sentence."""

    sentence: int
    group: int
    step: int
    """`sentence`, `group` and `step` are as in `Snapshot`."""
    open_before: Sequence[tuple[Sequence[int], float]]
    """
    Tokens and log-probability of each open hypothesis of the previous step; minus infinity marks
    dead hypotheses.
    """
    candidates: Sequence[Candidate]
    """The candidates, best first."""
    finished: frozenset[int]
    """Indices of the candidates that finish a hypothesis."""
    continued: frozenset[int]
    """Indices of the candidates that stay open."""
    cut: frozenset[int]
    """Indices of the open hypotheses that are cut."""
    over: DropReason
    """The reason why open hypotheses are dropped; empty if they are kept."""
    coverage: Sequence[float] | None = None
    """Coverage penalty after this step of each hypothesis in `open_before`; 0 if None."""
    coverage_before: Sequence[float] | None = None
    """Coverage penalty before this step of each hypothesis in `open_before`; 0 if None."""

    def snapshot(self, end_token: int, penalty: LengthPenalty) -> Snapshot:
        """Build the view of the step: sort the candidates into open, ended and dropped."""
        # A candidate is dead if a rule forbids it, or if its parent is dead.
        places: dict[str, list[HypothesisView]] = {"open": [], "ended": [], "dropped": []}
        divisor, shorter = (penalty.divisor(max(1, self.step - less)) for less in (0, 1))
        alive = itertools.accumulate(
            (total > float("-inf") for _, total in self.open_before), initial=0
        )
        places_before = list(alive)
        none = [0.0] * len(self.open_before)
        costs, costs_before = self.coverage or none, self.coverage_before or none
        for column, candidate in enumerate(self.candidates):
            tokens, before = self.open_before[candidate.parent]
            total = before + candidate.log_probability
            if not total > float("-inf"):
                continue
            place, why = self._fate(column, candidate.token == end_token)
            text = (*tokens, candidate.token)
            score = total / divisor + costs[candidate.parent]
            seen = HypothesisView(places_before[candidate.parent], text, total, score, why)
            places[place].append(seen)
        cut = tuple(
            HypothesisView(
                places_before[index], tuple(tokens), total, total / shorter + costs_before[index]
            )
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
        """Return where a candidate belongs, and the reason if it is dropped."""
        if column in self.finished:
            return "ended", ""
        if ends:
            return "dropped", "end"
        if column not in self.continued:
            return "dropped", "beam"
        return ("dropped", self.over) if self.over else ("open", "")


def offset_sentence(observer: SearchObserver, rows: Sequence[int]) -> SearchObserver:
    """Wrap an observer so that it receives indices of lines in the complete text."""

    def observe_row(snapshot: Snapshot) -> None:
        observer(replace(snapshot, sentence=rows[snapshot.sentence]))

    return observe_row
