"""Count training pairs that repeat held-out pairs; such pairs make validation scores too high."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heedful.data.overlap.lines import HeldOutLines, Repetition
from heedful.tokenization.special_symbols import split_tag

NOTE_BEGINS = "warning: the training text"
"""The first words of a note on repetitions, which tell it from other notes of a report."""
_EXAMPLES = 3


@dataclass(frozen=True)
class HeldOutPairs:
    """Held-out pairs; pairs with an empty side may be left out."""

    sources: Sequence[str]
    """Their sources."""
    targets: Sequence[str]
    """Their translations."""
    lines: Sequence[int]
    """Line number of each pair in its file, from 1."""

    def __post_init__(self) -> None:
        if not len(self.sources) == len(self.targets) == len(self.lines):
            raise ValueError("each held-out pair must have a source, a target and a line number")

    def changed(self, change: Callable[[str], str]) -> "HeldOutPairs":
        """Return the pairs with both sides changed by a function."""
        return HeldOutPairs([*map(change, self.sources)], [*map(change, self.targets)], self.lines)


class Leaks:
    """
    A count of the training pairs of one text that repeat a held-out pair.

    A pair repeats a held-out pair exactly if one of its sides repeats a held-out side exactly. It
    nearly repeats the pair if a side nearly repeats a held-out side and no side repeats one exactly
    (`heedful.data.overlap.lines`). Sources, without their language tags, are compared only with
    sources, and targets only with targets.
    """

    def __init__(self, held_out: HeldOutPairs, corpus: str = "") -> None:
        self._corpus = corpus
        self.exact = 0
        """Number of pairs with a side that equals a held-out side."""
        self.both = 0
        """Number of pairs that equal a held-out pair on both sides; `exact` includes them."""
        self.near = 0
        """
        Number of pairs with a side that nearly repeats a held-out side, and no side that equals
        one.
        """
        self._examples: dict[str, list[str]] = {"=": [], "~": []}
        sides = [split_tag(line)[1] for line in held_out.sources], held_out.targets
        self._index = [HeldOutLines(side) for side in sides]
        # For each side, the id of each pair's line; None for an empty line.
        self._ids = [
            [*map(index.id_of, side)] for index, side in zip(self._index, sides, strict=True)
        ]
        self._lines = held_out.lines
        self._pairs = {*zip(*self._ids, strict=True)}
        self._repeated: list[set[int]] = [set(), set()]
        # For each side, the line number of the first pair with each id.
        self._first: list[dict[int | None, int]] = []
        for ids in self._ids:
            self._first.append({})
            for number, line in zip(ids, self._lines, strict=True):
                self._first[-1].setdefault(number, line)

    def count(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        lines: Sequence[int],
        is_kept: Callable[[str, str], bool] = lambda source, target: True,
    ) -> None:
        """
        Compare training pairs; `lines` are their line numbers.

        `is_kept`: whether a pair is used for training; only asked for pairs that repeat a line.
        """
        sides = [split_tag(line)[1] for line in sources], targets
        matches = [index.find(side) for index, side in zip(self._index, sides, strict=True)]
        for place in sorted({*matches[0], *matches[1]}):
            if not is_kept(sources[place], targets[place]):
                continue
            pair = [side.get(place, Repetition(None, ())) for side in matches]
            equal = tuple(match.exact for match in pair)
            is_near = equal == (None, None)
            self.near += is_near
            self.exact += not is_near
            self.both += equal in self._pairs and None not in equal
            for side, match in enumerate(pair):
                self._repeated[side].update(match.near)
                self._repeated[side].update(() if match.exact is None else (match.exact,))
            sign = "~" if is_near else "="
            if len(self._examples[sign]) < _EXAMPLES:
                line = self._held_out_line(pair)
                self._examples[sign].append(f"{lines[place]:,} {sign} {line:,}")

    def _held_out_line(self, pair: Sequence[Repetition]) -> int:
        """Return the line number of a held-out line that a pair repeats, if possible exactly."""
        for first, match in zip(self._first, pair, strict=True):
            if match.exact is not None:
                return first[match.exact]
        return min(
            first[number]
            for first, match in zip(self._first, pair, strict=True)
            for number in match.near
        )

    @property
    def repeated(self) -> int:
        """Count the held-out pairs that the training text repeats."""
        return sum(
            any(number in repeated for number, repeated in zip(pair, self._repeated, strict=True))
            for pair in zip(*self._ids, strict=True)
        )

    def note(self) -> str:
        """Describe the repetitions in a paragraph; empty if there are none."""
        if not self.exact and not self.near:
            return ""
        counts = []
        if self.exact:
            both = f" ({self.both:,} of them on both sides)" if self.both else ""
            counts.append(f"{_pairs(self.exact)} a line that equals a validation line{both}")
        if self.near:
            counts.append(
                f"{_pairs(self.near)} at least 90% of the word 4-grams of a validation line"
            )
        corpus = f" of {self._corpus}" if self._corpus else ""
        return (
            f"{NOTE_BEGINS}{corpus} repeats {self.repeated:,} of {len(self._lines):,} validation "
            f"pairs: {' and '.join(counts)}. Validation scores can be too high. Examples (training "
            "line = validation line, with ~ for a near repetition): "
            f"{', '.join(self._examples['='] + self._examples['~'])}. To drop such pairs, name "
            "the validation files with --exclude, or validate with other text."
        )


def _pairs(count: int) -> str:
    """Format a count of pairs as the beginning of a sentence."""
    return "1 training pair has" if count == 1 else f"{count:,} training pairs have"
