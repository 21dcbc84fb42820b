"""
Positions in a translation for pieces held back from its source, chosen by word links.

::

    source  the big red | dog sleeps     links  the-le big-gros red-rouge dog-chien sleeps-dort
    target  le gros chien rouge dort

A position between two target words is good if source words before the gap are linked to target
words before the position. Likewise, source words after the gap should be linked to target words
after the position. Words near the gap count most.
"""

import re
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

Links = Iterable[tuple[int, int]]
Span = tuple[int, int]

# A position is certain if the links that cross it have at most this share of the weight.
_MOST_CROSSING = 0.34
_MARKS_AFTER = re.compile(r"[^\w\s]+\Z")
_MARKS_BEFORE = re.compile(r"[^\w\s]+")


class Boundary(NamedTuple):
    """A boundary between target words, at which a piece is inserted."""

    boundary: int
    """Number of target words before it."""
    is_sure: bool


def best_place(gap: int, words: int, links: Links) -> Boundary:
    """
    Find the boundary between target words for a gap in the source.

    `gap`: number of source words before it. `words`: number of target words.

    >>> best_place(3, 5, [(0, 0), (1, 1), (2, 3), (3, 2), (4, 4)]).boundary
    4
    """
    weighted = [
        (i, j, 1.0 / (gap - i if i < gap else i - gap + 1)) for i, j in links if 0 <= j < words
    ]
    if not any(i in (gap - 1, gap) for i, _, _ in weighted):
        return Boundary(words, False)
    total = sum(weight for _, _, weight in weighted)
    # A link of a word before the gap crosses all boundaries up to its target word; any other link
    # crosses all boundaries after its target word.
    changes, first = [0.0] * (words + 1), 0.0
    for i, j, weight in weighted:
        first += weight if i < gap else 0.0
        changes[j + 1] += -weight if i < gap else weight
    crossing = list(accumulate(changes, initial=first))[1:]
    least = min(crossing)
    # Of equally good positions, the last is used, because an article belongs to the word after it.
    boundary = max(place for place, cost in enumerate(crossing) if cost <= least + 1e-9)
    # The position moves past words without links, next to the translation of a word at the gap.
    before = [j for i, j, _ in weighted if i == gap - 1 and j < boundary]
    after = [j for i, j, _ in weighted if i == gap and j >= boundary]
    if after and not before:
        boundary = min(after)
    elif before:
        nearest = max(before) + 1
        boundary = nearest if crossing[nearest] <= least + 1e-9 else boundary
    return Boundary(boundary, least <= _MOST_CROSSING * total)


def linked_run(source: Iterable[int], words: int, links: Links) -> tuple[Span | None, bool]:
    """
    Find the longest run of target words that are linked to some source words.

    Returns the run (None if there is none), and whether there is exactly one run.
    """
    wanted = set(source)
    linked = sorted({j for i, j in links if i in wanted and 0 <= j < words})
    runs: list[Span] = []
    for j in linked:
        if runs and runs[-1][1] == j:
            runs[-1] = (runs[-1][0], j + 1)
        else:
            runs.append((j, j + 1))
    if not runs:
        return None, False
    return max(runs, key=lambda run: run[1] - run[0]), len(runs) == 1


def marks_before(text: str, start: int, end: int) -> int:
    """Return where a word begins after opening punctuation; its start if it is all punctuation."""
    match = _MARKS_BEFORE.match(text, start, end)
    return match.end() if match and match.end() < end else start


def marks_after(text: str, start: int, end: int) -> int:
    """Return where a word ends before closing punctuation; its end if it is all punctuation."""
    match = _MARKS_AFTER.search(text, start, end)
    return match.start() if match and match.start() > start else end
