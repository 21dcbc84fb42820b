"""
A text that repeats a name at different distances, while the source does not contain the name.

Several lines of a text are joined into one line. A name is inserted into the translation at equal
distances and at its end::

    the cat sleeps . the dog eats .        le Bruno chat dort Bruno . le Bruno ...

Attention to the source cannot provide the name; the decoder must remember its own output. Lines
with small distances repeat the name often, which teaches models early that names are repeated.
"""

import random
from pathlib import Path

from heedful.data.text_parts import PARTS, Pair, side_files, write_lines
from heedful.errors import TextError
from heedful.experiments.corpus import TableCorpus

DISTANCES = (1, 2, 4, 8, 16, 32)
"""Number of words between a name and its next occurrence."""
NAMES = ("Anna", "Bruno", "Clara", "David", "Emma", "Felix", "Gina", "Hugo", "Ida", "Jonas")
_MOST_LINES, _FEWEST_LINES, _MOST_JOINED = 20_000, 300, 32
_LONGEST = 40  # maximum words of a line that is joined with other lines


def write_repeated_names(corpus: TableCorpus, folder: Path) -> TableCorpus:
    """
    Write training, validation and test text that repeats names.

    In line n, `DISTANCES[n % 6]` words separate the occurrences of a name. Each of the three texts
    has at least 300 lines. Raises `TextError` if translations have too few words
    separated by spaces.
    """
    generator = random.Random(1)
    parts = {}
    for part in PARTS:
        sides = (corpus.lines(part, side) for side in (corpus.source, corpus.target))
        every = list(zip(*sides, strict=True))
        pairs = [pair for pair in every if max(len(line.split()) for line in pair) <= _LONGEST]
        count = min(max(len(every), _FEWEST_LINES), _MOST_LINES)
        parts[part] = [
            _join_pairs(pairs, DISTANCES[number % len(DISTANCES)], generator)
            for number in range(count)
        ]
    write_lines(folder, side_files(parts, (corpus.source, corpus.target)), "this claim")
    return corpus._replace(folder=folder)


def _join_pairs(pairs: list[Pair], distance: int, generator: random.Random) -> Pair:
    """Join pairs of lines until the translation is long enough, and insert a name."""
    sources: list[str] = []
    words: list[str] = []
    while len(words) <= max(DISTANCES):
        if len(sources) == _MOST_JOINED or not pairs:
            raise TextError(
                f"the text for the claim `long` must have translations of 2 to {_LONGEST} words "
                f"separated by spaces, but {len(sources)} translations together have only "
                f"{len(words)} words; give another text."
            )
        source, target = generator.choice(pairs)
        sources.append(source)
        words += target.split()
    name = generator.choice(NAMES)
    first = len(words) % distance or distance  # chosen so that the line ends with the name
    parts = [words[:first], *(words[n : n + distance] for n in range(first, len(words), distance))]
    return " ".join(sources), " ".join(word for part in parts for word in (*part, name))
