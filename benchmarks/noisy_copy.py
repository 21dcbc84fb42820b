"""
A noisy copy of a test set, drawn from a seed.

    python -m benchmarks.noisy_copy SOURCE REFERENCE DIR [--seed N]

Writes a file of sources and a file of references to DIR for each kind of noise. The kinds are
capitals, title case, blanks, typing errors, final punctuation, symbols, placeholders and tags, and
a mixture of all. References also have the changes that a translation must keep, such as capitals
and symbols. All changes except blanks are the changes of `data.augment`.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from heedful.settings.registries import AUGMENTATIONS
from heedful.text.corpus import read_lines

Pair = tuple[str, str]
Copies = dict[str, tuple[list[str], list[str]]]
"""Sources and references by the kind of noise."""
_BLANKS = ("  ", "   ", "\u00a0", "\t", " \u200b")


def blanks(source: str, target: str, generator: Random) -> Pair:
    """Replace blanks around and between the words of the source with other white space."""
    words = source.split(" ")
    between = [generator.choice(_BLANKS) if generator.random() < 0.3 else " " for _ in words]
    joined = "".join(word + blank for word, blank in zip(words, between, strict=True))
    return " " * generator.randrange(3) + joined, target


NAMES = ("capitals", "title", "blanks", "typos", "punctuation", "symbols", "tags")


def noisy_copies(sources: Sequence[str], references: Sequence[str], seed: int = 1) -> Copies:
    """Make a copy of sources and references for each kind of noise; “clean” is the original."""
    pairs = list(zip(sources, references, strict=True))
    changes: dict[str, Callable[[str, str, Random], Pair]] = {
        name: blanks if name == "blanks" else AUGMENTATIONS[name] for name in NAMES
    }
    every = list(changes.values())
    changes["mixed"] = lambda s, t, generator: generator.choice(every)(s, t, generator)
    copies = {"clean": pairs}
    for name, change in changes.items():
        generator = Random(f"{seed} {name}")
        copies[name] = [change(source, target, generator) for source, target in pairs]
    return {name: ([s for s, _ in copy], [t for _, t in copy]) for name, copy in copies.items()}


def main() -> None:
    """Write the copies."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    texts = list(read_lines(options.source)), list(read_lines(options.reference))
    for name, copy in noisy_copies(*texts, options.seed).items():
        for side, lines in zip(("source", "reference"), copy, strict=True):
            content = "".join(f"{line}\n" for line in lines)
            (options.folder / f"{name}.{side}").write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
