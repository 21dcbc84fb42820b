"""
Loops in a translation: the same words or letters, repeated in several rounds.

If the source has no loop, all rounds but the first are cut from the translation. If the source
repeats itself, its translation may repeat as often.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import count

_LONGEST_ROUND = 20
_MARKS = ".,;:!?…'\"«»“”„()"
# “nous nous levons” is not a loop; three rounds in a row are a loop.
_LEAST_ROUNDS = 3
_LETTERS = re.compile(r"([^\s\d]{2,20}?)\1{3,}|([^\s\d])\2{4,}")

Span = tuple[int, int]


def loops_of_words(
    words: Sequence[str], least: int = _LEAST_ROUNDS
) -> Iterator[tuple[int, int, int]]:
    """
    Find loops; yields the index of the first word, the words per round, and the words in total.

    `least`: minimum number of rounds.

    >>> list(loops_of_words("a big dog a big dog a big dog a runs".split()))
    [(0, 3, 10)]
    """
    start = 0
    while start < len(words):
        for size in range(1, min(_LONGEST_ROUND, len(words) - start) + 1):
            end = start + size
            while end < len(words) and words[end] == words[end - size]:
                end += 1
            length = end - start
            if length >= size * least:
                yield start, size, length
                start += length
                break
        else:
            start += 1


def cut_word_loops(words: Sequence[str], source: Sequence[str]) -> list[Span]:
    """Find the spans of a translation's rounds beyond the number of rounds in its source."""
    # a loop needs a letter, because “1 000 000 000” is a number
    loops = [
        (start, size, length)
        for start, size, length in loops_of_words(words)
        if any(letter.isalpha() for word in words[start : start + size] for letter in word)
    ]
    if not loops:
        return []
    bare = [word.strip(_MARKS) or word for word in source]  # “very, very, very” is a loop
    rounds = max((length // size for _, size, length in loops_of_words(bare, 2)), default=1)
    return [
        (start + size * rounds, start + length)
        for start, size, length in loops
        if length // size > rounds
    ]


def cut_letter_loops(text: str, source: str) -> tuple[str, int]:
    """
    Cut letters that repeat more often than in the source; also return the number of cuts.

    >>> cut_letter_loops("Ein BOGAGAGAGAGA", "A BIG DOG")
    ('Ein BOGA', 1)
    """
    cuts = 0
    if not _LETTERS.search(text):
        return text, cuts
    most = max((len(loop[0]) // len(_unit(loop)) for loop in _LETTERS.finditer(source)), default=1)

    def cut(loop: re.Match[str]) -> str:
        nonlocal cuts
        unit = _unit(loop)
        rounds = max(most, _rounds_of(unit, source))
        if len(loop[0]) // len(unit) <= rounds:
            return loop[0]
        cuts += 1
        return unit * rounds

    return _LETTERS.sub(cut, text), cuts


def _unit(loop: re.Match[str]) -> str:
    """Return the unit that is repeated."""
    return loop[1] or loop[2]


def _rounds_of(unit: str, text: str) -> int:
    """Return the largest number of consecutive repetitions of a unit in a text; at least 1."""
    return max(1, next(n - 1 for n in count(1) if unit * n not in text))
