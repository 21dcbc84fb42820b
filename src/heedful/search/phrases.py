"""
Matching of phrases token by token.

Each phrase has an automaton of Knuth, Morris and Pratt (1977). After every token, the automaton
knows the longest prefix of the phrase that is a suffix of the text. So no match is missed, even if
phrases overlap, repeat or remain incomplete.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

Ids = Sequence[int]


@dataclass(frozen=True)
class LineConstraints:
    """Constraints on one line, as subwords: other subwords with the same letters do not match."""

    prefix: tuple[int, ...] = ()
    """First tokens of the translation."""
    phrases: tuple[tuple[int, ...], ...] = ()
    """Phrases that must occur in the translation, as often as they are listed."""
    avoided: tuple[tuple[int, ...], ...] = ()
    """Phrases that must not occur in the translation."""


class PhraseProgress(NamedTuple):
    """Progress of a hypothesis through its phrases."""

    counts: tuple[int, ...]
    """Occurrences of each phrase."""
    matched: tuple[int, ...]
    """For each phrase, the length of its longest prefix with which the hypothesis ends."""


class Phrases:
    """
    The token sequences that one sentence's translation must contain, each as often as listed.

    Occurrences may overlap, so “a a” occurs twice in “a a a”. Empty sequences are ignored.
    """

    def __init__(self, phrases: Sequence[Ids]) -> None:
        wanted = Counter(tuple(phrase) for phrase in phrases if phrase)
        self.phrases, self.wanted = tuple(wanted), tuple(wanted.values())
        self._borders = tuple(map(_borders, self.phrases))
        nothing = (0,) * len(self.phrases)
        self._read: dict[tuple[int, ...], PhraseProgress] = {(): PhraseProgress(nothing, nothing)}

    def read(self, tokens: tuple[int, ...]) -> PhraseProgress:
        """Match the tokens of a hypothesis."""
        known = len(tokens)
        while tokens[:known] not in self._read:
            known -= 1
        progress = self._read[tokens[:known]]
        for length in range(known, len(tokens)):
            progress = self.after(progress, tokens[length])
            self._read[tokens[: length + 1]] = progress
        return progress

    def after(self, progress: PhraseProgress, token: int) -> PhraseProgress:
        """Match one more token."""
        # Knuth, Morris and Pratt 1977: after a mismatch, continue with the longest prefix of the
        # phrase that is a suffix of the text.
        counts, matched = list(progress.counts), list(progress.matched)
        for i, phrase in enumerate(self.phrases):
            length = self._open_end(i, matched[i])
            while length and phrase[length] != token:
                length = self._borders[i][length - 1]
            matched[i] = length + (phrase[length] == token)
            counts[i] += matched[i] == len(phrase)
        return PhraseProgress(tuple(counts), tuple(matched))

    def met(self, progress: PhraseProgress) -> bool:
        """Return whether all phrases occur."""
        return all(have >= want for have, want in zip(progress.counts, self.wanted, strict=True))

    def bank(self, progress: PhraseProgress) -> int:
        """Count the phrase tokens met; the tokens of a phrase that breaks off no longer count."""
        complete = sum(
            min(have, want) * len(phrase)
            for phrase, have, want in zip(self.phrases, progress.counts, self.wanted, strict=True)
        )
        begun = (self._open_end(i, progress.matched[i]) for i in self._missing(progress))
        return complete + max(begun, default=0)

    def onward(self, progress: PhraseProgress) -> set[int]:
        """Find the tokens that continue a missing phrase."""
        return {
            self.phrases[i][self._open_end(i, progress.matched[i])] for i in self._missing(progress)
        }

    def missing(self, tokens: Ids) -> list[tuple[int, ...]]:
        """List the phrases that a translation lacks, for a message to the user."""
        return [self.phrases[i] for i in self._missing(self.read(tuple(tokens)))]

    def _missing(self, progress: PhraseProgress) -> list[int]:
        """List the indices of the phrases that do not yet occur often enough."""
        return [i for i, want in enumerate(self.wanted) if progress.counts[i] < want]

    def _open_end(self, i: int, matched: int) -> int:
        """Count the matched tokens of a phrase's next occurrence."""
        return self._borders[i][-1] if matched == len(self.phrases[i]) else matched


def _borders(phrase: tuple[int, ...]) -> tuple[int, ...]:
    """Compute for each prefix the length of its longest proper prefix that is also its suffix."""
    borders = [0] * len(phrase)
    length = 0
    for end in range(1, len(phrase)):
        while length and phrase[end] != phrase[length]:
            length = borders[length - 1]
        length += phrase[end] == phrase[length]
        borders[end] = length
    return tuple(borders)
