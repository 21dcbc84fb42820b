"""
The beam tree of an observed search: each hypothesis, its fate, and the reason.

::

    trace = Trace()
    translator.translate(["A dog runs."], observer=trace)
    trace.tree()
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from heedful.search.observer import DropReason, HypothesisView, Snapshot

NodeStatus = Literal["open", "ended", "dropped", "best"]

_REASONS: dict[DropReason, str] = {
    "end": "It ended, but was not among the best candidates of its step.",
    "limit": "It had not ended at the length limit.",
    "win": "No continuation could still enter the n-best list.",
    "full": "Enough hypotheses had ended.",
}
_FOLLOWED = frozenset(("limit", "win", "full"))


@dataclass(frozen=True)
class BeamNode:
    """One hypothesis of a search at one step."""

    token: int
    """The newest token of the hypothesis."""
    parent: int | None
    """Index of the parent in the previous step; None at the first step."""
    log_probability: float
    """Natural logarithm of the probability of all tokens so far."""
    score: float
    """The log-probability divided by the length penalty, plus any coverage penalty."""
    status: NodeStatus
    """Whether the hypothesis stayed open, ended, was dropped, or was returned as the best."""
    why: str = ""
    """The reason, as a sentence; empty if the hypothesis stayed open."""


class Trace:
    """A recorder of all steps of a search."""

    def __init__(self) -> None:
        self._steps: dict[int, dict[int, list[Snapshot]]] = {}

    def __call__(self, snapshot: Snapshot) -> None:
        """Record one step of one sentence."""
        # Snapshots contain all tokens, so memory grows with the square of the length: a megabyte
        # for 200 tokens and a beam of 4.
        groups = self._steps.setdefault(snapshot.sentence, {})
        groups.setdefault(snapshot.group, []).append(snapshot)

    def best(self, sentence: int = 0) -> tuple[tuple[int, ...], bool]:
        """
        Find the best hypothesis of a sentence.

        This is the complete hypothesis with the best score. If no hypothesis is complete, it is the
        cut hypothesis with the best score; only the first cut hypothesis of each step is
        considered. Raises `ValueError` if the search was not observed to its end.
        """
        _, chosen, complete = self._best(sentence)
        return chosen.tokens, complete

    def tree(self, sentence: int = 0) -> tuple[tuple[BeamNode, ...], ...]:
        """Build the tree of a sentence from its steps."""
        # Each step lists the groups of a diverse beam in order; parents are in the same group.
        where, chosen, complete = self._best(sentence)
        groups = self._steps[sentence]
        steps: list[list[BeamNode]] = [[] for _ in range(max(map(len, groups.values())))]
        for group, snapshots in sorted(groups.items()):
            own = chosen if group == where else None
            for step, branches in enumerate(_branches(snapshots, own, chosen.score, complete)):
                # The groups of a sentence end together, so earlier groups are in every step.
                shift = len(steps[step - 1]) - _width(snapshots, step - 1) if step else 0
                steps[step] += [_offset_parents(branch, shift) for branch in branches]
        return tuple(map(tuple, steps))

    def _best(self, sentence: int) -> tuple[int, HypothesisView, bool]:
        """Find the group of the best hypothesis, the hypothesis, and whether it is complete."""
        groups = sorted(self._steps.get(sentence, {}).items())
        for complete in (True, False):
            candidates = [
                (group, seen)
                for group, snapshots in groups
                for snapshot in snapshots
                for seen in (snapshot.ended if complete else snapshot.cut[:1])
            ]
            if candidates:
                return *max(candidates, key=lambda pair: pair[1].score), complete
        raise ValueError(
            f"the search for sentence {sentence} must be recorded to its end, but was not"
        )


def _candidate_views(snapshot: Snapshot) -> list[HypothesisView]:
    """List the candidates of a step, the most probable first."""
    everything = (*snapshot.open, *snapshot.ended, *snapshot.dropped)
    return sorted(everything, key=lambda seen: -seen.log_probability)


def _width(snapshots: Sequence[Snapshot], step: int) -> int:
    """Count the candidates of a step."""
    return len(_candidate_views(snapshots[step])) if step < len(snapshots) else 0


def _offset_parents(branch: BeamNode, shift: int) -> BeamNode:
    """Offset the parent's index by the number of earlier groups' hypotheses."""
    return branch if branch.parent is None else replace(branch, parent=branch.parent + shift)


def _branches(
    snapshots: Sequence[Snapshot], best: HypothesisView | None, best_score: float, complete: bool
) -> list[list[BeamNode]]:
    """Build the nodes of one group, step by step."""
    steps = []
    places: list[int] = []
    for step, snapshot in enumerate(snapshots):
        after = snapshots[step + 1] if step + 1 < len(snapshots) else None
        weighed = _candidate_views(snapshot)
        branches = []
        for seen in weighed:
            parent = places[seen.parent] if step else None
            status, why = _status(seen, snapshot, after, best, best_score, complete)
            branches.append(
                BeamNode(seen.tokens[-1], parent, seen.log_probability, seen.score, status, why)
            )
        steps.append(branches)
        places = [weighed.index(seen) for seen in snapshot.open]
    return steps


def _status(
    seen: HypothesisView,
    snapshot: Snapshot,
    after: Snapshot | None,
    best: HypothesisView | None,
    best_score: float,
    complete: bool,
) -> tuple[NodeStatus, str]:
    """Return the status of a hypothesis and the reason."""
    if best is not None and seen.tokens == best.tokens:
        reason = "It has the best score of all complete hypotheses."
        return (
            "best",
            reason
            if complete
            else "No hypothesis ended within the length limit, so the best one that was cut "
            "there was chosen.",
        )
    if seen in snapshot.ended:
        return "ended", f"Its score, {seen.score:.3f}, is not above {best_score:.3f}, the best."
    if seen in snapshot.dropped:
        count = len(snapshot.open) + sum(dropped.why in _FOLLOWED for dropped in snapshot.dropped)
        taken = "The one place in the beam went to another hypothesis."
        if count != 1:
            taken = f"The {count} places in the beam went to other hypotheses."
        return "dropped", _REASONS.get(seen.why, taken)
    return ("open", "") if after is None else _status_of_open(snapshot.open.index(seen), after)


def _status_of_open(place: int, after: Snapshot) -> tuple[NodeStatus, str]:
    """Return the status of an open hypothesis after the next step, and the reason."""
    if any(cut.parent == place for cut in after.cut):
        return "dropped", _REASONS["limit"]
    followed = (
        *after.open,
        *after.ended,
        *(continuation for continuation in after.dropped if continuation.why in _FOLLOWED),
    )
    if any(continuation.parent == place for continuation in followed):
        return "open", ""
    return "dropped", "None of its continuations got a place in the beam."
