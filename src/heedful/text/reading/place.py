"""
The place in a translation for a piece that was held back from its source, by word links.

::

    source  the big red | dog sleeps     links  the-le big-gros red-rouge dog-chien sleeps-dort
    target  le gros chien rouge dort

A place between two target words is good if source words before the gap are linked to target words
before the place. The same holds for words after the gap and the place. Words near the gap count
most.
"""

import re
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

Links = Iterable[tuple[int, int]]
Span = tuple[int, int]

# A place is sure if the links that cross it have at most this share of the weight.
_MOST_CROSSING = 0.34
_MARKS_BEHIND = re.compile(r"[^\w\s]+\Z")
_MARKS_BEFORE = re.compile(r"[^\w\s]+")


class Boundary(NamedTuple):
    """A boundary between target words, at which a piece is put."""

    boundary: int
    """Number of target words before it."""
    is_sure: bool


def best_place(gap: int, words: int, links: Links) -> Boundary:
    """
    Find the boundary between target words for a gap of the source.

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
    # Of equal places the last is used, because articles belong to the word behind them.
    boundary = max(place for place, cost in enumerate(crossing) if cost <= least + 1e-9)
    # The place moves past words without a link, next to the translation of the word before the gap.
    before = [j for i, j, _ in weighted if i == gap - 1 and j < boundary]
    behind = [j for i, j, _ in weighted if i == gap and j >= boundary]
    if behind and not before:
        boundary = min(behind)
    elif before:
        nearest = max(before) + 1
        boundary = nearest if crossing[nearest] <= least + 1e-9 else boundary
    return Boundary(boundary, least <= _MOST_CROSSING * total)


def linked_run(source: Iterable[int], words: int, links: Links) -> tuple[Span | None, bool]:
    """
    Find the target words that translate source words: the longest run of them.

    Returns the run, None if there is none, and whether there is exactly one.
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
    """Return where a word begins behind its opening marks; its start if it is all marks."""
    match = _MARKS_BEFORE.match(text, start, end)
    return match.end() if match and match.end() < end else start


def marks_behind(text: str, start: int, end: int) -> int:
    """Return where a word ends before its closing marks; its end if it is all marks."""
    match = _MARKS_BEHIND.search(text, start, end)
    return match.start() if match and match.start() > start else end
