"""
A text whose last word repeats an earlier one, at growing distance, which the source does not tell.

Some lines of a text make one. Into its translation goes a name, so many words before the end, and
the same name ends it::

    the cat sleeps . the dog eats .        le chat dort . le chien Bruno mange . Bruno

No attention to the source tells the last word: only what a decoder keeps of its own words does.
"""

import random
from pathlib import Path

from heedful.data.text_parts import PARTS, Pair, side_files, write_lines
from heedful.errors import TextError
from heedful.paper.systems.corpus import TableCorpus

DISTANCES = (1, 2, 4, 8, 16, 32)
NAMES = ("Anna", "Bruno", "Clara", "David", "Emma", "Felix", "Gina", "Hugo", "Ida", "Jonas")
_MOST_LINES, _MOST_JOINED = 20_000, 32


def write_repeated_names(corpus: TableCorpus, folder: Path) -> TableCorpus:
    """Write the three parts; `TextError` where lines have too few words between spaces."""
    generator = random.Random(1)
    parts = {}
    for part in PARTS:
        sides = (corpus.lines(part, one) for one in (corpus.source, corpus.target))
        pairs = list(zip(*sides, strict=True))
        parts[part] = [
            _joined(pairs, distance_of(number), generator)
            for number in range(min(len(pairs), _MOST_LINES))
        ]
    write_lines(folder, side_files(parts, (corpus.source, corpus.target)), "this claim")
    return corpus._replace(folder=folder)


def distance_of(line: int) -> int:
    """Tell how many words before the end a line has the name."""
    return DISTANCES[line % len(DISTANCES)]


def _joined(pairs: list[Pair], distance: int, generator: random.Random) -> Pair:
    """Join pairs of lines until their translation is long enough for every distance."""
    sources: list[str] = []
    words: list[str] = []
    while len(words) < max(DISTANCES):
        if len(sources) == _MOST_JOINED:
            raise TextError(
                f"the text for this claim must have words with spaces between, but {_MOST_JOINED} "
                f"of its translations together have {len(words)}; give a text whose target "
                "language is written so."
            )
        source, target = generator.choice(pairs)
        sources.append(source)
        words += target.split()
    name = generator.choice(NAMES)
    place = len(words) - distance + 1
    return " ".join(sources), " ".join([*words[:place], name, *words[place:], name])
