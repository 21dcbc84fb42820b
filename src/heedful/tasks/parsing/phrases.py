"""The source tokens that each phrase of a linearized tree covers."""

from collections.abc import Sequence

from heedful.alignment.words import SPACE, units_of
from heedful.tasks.parsing.constraints import CLOSE, OPEN, WORD, TreeSymbols
from heedful.visualise.record import Phrase


def phrases_of(
    symbols: TreeSymbols, target: Sequence[int], pieces: Sequence[str], mark: str = SPACE
) -> tuple[Phrase, ...]:
    """
    Find the closed phrases that contain words of the source.

    `pieces`: the source tokens without the end symbol. `mark`: the argument of `units_of`.
    """
    # if words are numbered, each word follows its number, which is a separate word
    stride = 1 if symbols.numbers is None else 2
    words = [unit.pieces for unit in units_of(pieces, mark)][stride - 1 :: stride]
    phrases: list[Phrase] = []
    opened: list[tuple[int, int, int]] = []  # index, label, number of words before
    written = 0
    for place, token in enumerate(target):
        kind = symbols.kinds[token]
        if kind == WORD:
            written += 1
        elif kind == OPEN:
            opened.append((place, symbols.labels[token], written))
        elif kind == CLOSE and opened and opened[-1][1] == symbols.labels[token]:
            start, _, first = opened.pop()
            if first < written <= len(words):
                phrases.append(Phrase(start, place, words[first].start, words[written - 1].stop))
    return tuple(phrases)
