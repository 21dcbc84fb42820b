"""
Choice of the characters of a text that get a subword of their own.

Text from the web has characters that occur in only a few lines. Each would take a vocabulary entry,
and noisy lines can contain thousands of them. So `data.character_coverage` is the minimum share of
lines whose characters are all in the vocabulary. The characters that occur in the fewest lines are
left out as long as this share is reached. SentencePiece's setting of that name counts characters,
so a long noisy line would weigh as much as a hundred clean ones.

By default one line in 2,000 may lose characters, which is less than one line of a small text. If
characters would take most of the vocabulary, at least one line may lose some. If the characters
would not fit at all, one line in a hundred may lose some.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice
from typing import NamedTuple

_SHOWN = 5


class CharacterLines:
    """For each character of a text, the number of lines with it, and the first such line."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self.total = 0
        self.counts: Counter[str] = Counter()
        self._first: dict[str, int] = {}
        for line in lines:
            self.add(line)

    def add(self, line: str) -> None:
        """Count the characters of a line."""
        self.total += 1
        characters = set(line)
        self.counts.update(characters)
        for character in characters - self._first.keys():
            self._first[character] = self.total

    def rarest(self, most_lines: int) -> list[str]:
        """List the characters that occur in at most `most_lines` lines, the rarest first."""
        rare = [c for c, count in self.counts.items() if count <= most_lines]
        # Equally rare characters are grouped by their first line, and the largest group comes
        # first.
        groups = Counter((self.counts[c], self._first[c]) for c in rare)
        return sorted(
            rare,
            key=lambda c: (
                self.counts[c],
                -groups[self.counts[c], self._first[c]],
                self._first[c],
                c,
            ),
        )

    def costliest(self, characters: Iterable[str]) -> list[tuple[int, str]]:
        """List the lines (from 1) that introduce the most characters, and these characters."""
        brought: dict[int, list[str]] = {}
        for character in characters:
            brought.setdefault(self._first[character], []).append(character)
        ranked = sorted(brought.items(), key=lambda item: (-len(item[1]), item[0]))
        return [(number, "".join(introduced)) for number, introduced in ranked[:_SHOWN]]


class Losses(NamedTuple):
    """The number of lines that contain at least one of a text's rarest characters."""

    characters: Sequence[str]
    """Candidates, the rarest first."""
    lines: Sequence[int]
    """For each character: the number of lines that contain it or a rarer candidate."""

    @classmethod
    def of(cls, characters: Sequence[str], lines: Iterable[str]) -> "Losses":
        """Count the lines that contain each candidate or a rarer one."""
        rank = {character: place for place, character in enumerate(characters)}
        candidates, newly = frozenset(rank), [0] * len(rank)
        for line in lines:
            if not candidates.isdisjoint(line):
                newly[min(rank[c] for c in candidates.intersection(line))] += 1
        return cls(characters, list(accumulate(newly)))

    def within(self, lines: int) -> int:
        """Count the characters that can be left out if at most `lines` lines may lose one."""
        return sum(1 for lost in self.lines if lost <= lines)

    def cost(self, characters: int) -> int:
        """Count the lines that lose one of the first `characters` characters."""
        return self.lines[characters - 1] if characters else 0


def lines_to_lose(coverage: float, total: int) -> int:
    """
    Count the lines that may contain a character outside the vocabulary.

    >>> lines_to_lose(0.9995, 10_000)
    5
    """
    return math.floor((1 - coverage) * total + 1e-6)


def coverage_for(lines: int, total: int) -> float:
    """
    Return a coverage with few digits that lets at least `lines` lines lose characters.

    >>> coverage_for(3, 4000)
    0.9992
    """
    for digits in range(2, 12):
        coverage = math.floor((1 - lines / total) * 10**digits) / 10**digits
        if lines_to_lose(coverage, total) <= lines + lines // 5:
            break
    return coverage


def show_characters(characters: Iterable[str]) -> str:
    """Show the first few characters; invisible ones are shown as code points."""
    first = list(islice(characters, _SHOWN + 1))
    text = " ".join(c if c.isprintable() and not c.isspace() else f"U+{ord(c):04X}" for c in first)
    return text if len(first) <= _SHOWN else f"{text.rpartition(' ')[0]} …"
