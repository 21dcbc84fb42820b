"""
Filtering of training pairs, with counts for each reason.

Rules for text are applied first (`TextRules` in `heedful.data.cleaning.rules`), then length limits
(`PairFilter`). Lengths are counted in subwords, which determine memory and time. A pair is counted
under the first rule that it breaks.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

RULES = {
    "empty": "a side is empty or has only spaces",
    "overlap": "a side repeats a line of an excluded text (--exclude)",
    "near": "a side has at least 90% of the word 4-grams of an excluded line (--exclude)",
    "script": "a side has too few letters of its language's script (data.min_script_share)",
    "duplicate": "the pair repeats an earlier pair (data.drop_duplicates)",
    "too long": "a side has too many subwords (data.max_length)",
    "ratio": "one side is too long compared with the other (data.max_length_ratio)",
}
"""Each rule with the reason for which it drops a pair, in the order of application."""

_EXAMPLES = 5
_EXAMPLE_CHARACTERS = 200


@dataclass(frozen=True)
class PairFilter:  # numpydoc ignore=PR02
    """A filter of pairs by length."""

    max_length: int
    """Maximum number of subwords on either side, without special symbols."""
    max_length_ratio: float | None
    """Maximum ratio of the longer side's length to the shorter side's; None for no limit."""

    def reason(self, source_length: int, target_length: int) -> str | None:
        """
        Return why a pair is dropped.

        Returns “empty”, “too long” or “ratio”, the first that applies; None if the pair is kept.

        The limits themselves are allowed: a side of `max_length` subwords is kept.
        """
        shorter, longer = sorted((source_length, target_length))
        if shorter == 0:
            return "empty"
        if longer > self.max_length:
            return "too long"
        if self.max_length_ratio is not None and longer > self.max_length_ratio * shorter:
            return "ratio"
        return None


@dataclass(frozen=True)
class DroppedPair:  # numpydoc ignore=PR02
    """A dropped pair."""

    line: int
    """Line number, counted from 1 over all files of a side."""
    source: str
    """The source line, cut to 200 characters."""
    target: str
    """The target line, cut to 200 characters."""


@dataclass
class CleaningReport:  # numpydoc ignore=PR02
    """Counts of kept and dropped pairs, with the first examples of each reason."""

    kept: int = 0
    """Number of pairs kept."""
    dropped: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RULES, 0))
    """Number of pairs dropped, by reason."""
    examples: dict[str, list[DroppedPair]] = field(default_factory=dict)
    """The first five pairs dropped for each reason."""
    notes: list[str] = field(default_factory=list)
    """Further remarks, such as a rule that could not be applied."""

    @property
    def total_dropped(self) -> int:
        """Number of pairs dropped for any reason."""
        return sum(self.dropped.values())

    def drop(self, reason: str, line: int, source: str, target: str) -> None:
        """
        Count a dropped pair.

        `line`: the line number of the pair, from 1.

        The first pairs are stored as examples, truncated because a line may be a megabyte long.
        """
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
        shown = self.examples.setdefault(reason, [])
        if len(shown) < _EXAMPLES:
            cut = _EXAMPLE_CHARACTERS
            shown.append(DroppedPair(line, source[:cut], target[:cut]))

    def summary(self) -> str:
        """Summarize the counts in one line."""
        counts = sorted(self.dropped.items(), key=lambda item: -item[1])
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in counts if number)
        pairs = f"{self.kept:,} {'pair' if self.kept == 1 else 'pairs'} kept"
        return f"{pairs}, {self.total_dropped:,} dropped" + (f" ({reasons})" if reasons else "")

    def table(self) -> str:
        """Format the counts and examples of each rule for a terminal."""
        total = self.kept + self.total_dropped
        rows = [(rule, number, RULES.get(rule, "")) for rule, number in self.dropped.items()]
        lines = [f"{'kept':<10}{self.kept:>13,}{_share(self.kept, total):>9}"]
        for rule, number, meaning in rows:
            lines.append(f"{rule:<10}{number:>13,}{_share(number, total):>9}  {meaning}".rstrip())
        for rule, examples in self.examples.items():
            lines += ["", f"{rule}, for example"]
            for example in examples:
                texts = (example.source, example.target)
                lines += [f"  line {example.line:,}", *(f"    {_printable(t)}" for t in texts)]
        for note in self.notes:
            lines += ["", note if note.startswith("warning: ") else f"note: {note}"]
        return "\n".join(lines)

    def readable(self) -> dict[str, Any]:
        """Convert the counts and examples of each rule to values for ``report.json``."""
        return {
            "pairs": self.kept + self.total_dropped,
            "kept": self.kept,
            "rules": [
                {
                    "rule": rule,
                    "drops": RULES.get(rule, ""),
                    "dropped": number,
                    "examples": [asdict(example) for example in self.examples.get(rule, [])],
                }
                for rule, number in self.dropped.items()
            ],
            "notes": self.notes,
        }

    def to_json(self) -> dict[str, Any]:
        """Convert to a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "CleaningReport":
        """
        Read an object that `to_json` returned.

        Unknown reasons are kept, because their pairs were dropped too.

        Raises `KeyError`, `TypeError` or `ValueError` if the record is not such an object; the
        caller names the file.
        """
        return cls(
            int(record["kept"]),
            {str(reason): int(number) for reason, number in dict(record["dropped"]).items()},
            {
                str(reason): [
                    DroppedPair(int(e["line"]), str(e["source"]), str(e["target"]))
                    for e in examples
                ]
                for reason, examples in dict(record.get("examples", {})).items()
            },
            [str(note) for note in record.get("notes", [])],
        )

    @classmethod
    def merged(cls, reports: Iterable["CleaningReport"]) -> "CleaningReport":
        """Merge reports on parts of a text."""
        total = cls()
        for report in reports:
            total.kept += report.kept
            total.notes += [note for note in report.notes if note not in total.notes]
            for reason, number in report.dropped.items():
                total.dropped[reason] = total.dropped.get(reason, 0) + number
            for reason, examples in report.examples.items():
                both = sorted([*total.examples.get(reason, []), *examples], key=lambda e: e.line)
                total.examples[reason] = both[:_EXAMPLES]
        order = [rule for rule in total.dropped if rule in total.examples]
        total.examples = {rule: total.examples[rule] for rule in order}
        return total


def _share(part: int, total: int) -> str:
    """Format a share as a percentage."""
    return f"{part / total if total else 0:.2%}"


def _printable(text: str) -> str:
    """Replace control characters, which a terminal would execute."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
