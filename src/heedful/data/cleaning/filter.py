"""
Which sentence pairs are left out of training, and how many for which reason.

Text is judged first (`TextRules` in `heedful.data.cleaning.rules`), what is left by its subwords
(`PairFilter`): lengths are counted in subwords, because that is what costs memory and time. A pair
is counted under the first rule that it breaks.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

RULES = {
    "empty": "a side is empty or nothing but spaces",
    "overlap": "a side occurs in a text that is to stay unseen (--exclude)",
    "script": "a side has too few letters of its language's script (data.min_script_share)",
    "duplicate": "the same pair came before (data.drop_duplicates)",
    "too long": "a side has too many subwords (data.max_length)",
    "ratio": "one side has too many subwords for the other (data.max_length_ratio)",
}
"""Each rule and what breaks it, in the order in which they are tried."""

_EXAMPLES = 5
_EXAMPLE_CHARACTERS = 200


@dataclass(frozen=True)
class PairFilter:  # numpydoc ignore=PR02
    """
    Decide by their lengths which pairs are kept.

    Attributes
    ----------
    max_length : int
        The most subwords either side may have, without special symbols.
    max_length_ratio : float or None
        The most times one side may be longer than the other; None for no limit.
    """

    max_length: int
    max_length_ratio: float | None

    def reason(self, source_length: int, target_length: int) -> str | None:
        """
        Say why a pair is dropped.

        Parameters
        ----------
        source_length : int
            Subwords of the source side.
        target_length : int
            Subwords of the target side.

        Returns
        -------
        str or None
            “empty”, “too long” or “ratio”, the first that holds; None if the pair is kept.

        Notes
        -----
        The limits themselves are still allowed: a side of `max_length` subwords is kept.
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
    """
    Show a pair that was dropped.

    Attributes
    ----------
    line : int
        Where it stands, counted from 1 over all files of a side.
    source : str
        Its source line, cut to 200 characters.
    target : str
        Its target line, cut likewise.
    """

    line: int
    source: str
    target: str


@dataclass
class CleaningReport:  # numpydoc ignore=PR02
    """
    Count the pairs that were kept and dropped, and remember the first ones of each kind.

    Attributes
    ----------
    kept : int, default 0
        Pairs kept.
    dropped : dict of str to int, optional
        Pairs dropped, by reason.
    examples : dict of str to list of DroppedPair, optional
        The first five that each reason dropped.
    notes : list of str, optional
        What else the reader should know, such as a rule that could not be applied.
    """

    kept: int = 0
    dropped: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RULES, 0))
    examples: dict[str, list[DroppedPair]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def total_dropped(self) -> int:
        """Pairs dropped for any reason."""
        return sum(self.dropped.values())

    def drop(self, reason: str, line: int, source: str, target: str) -> None:
        """
        Count a pair that is dropped.

        Parameters
        ----------
        reason : str
            The rule that it breaks.
        line : int
            Where it stands, from 1.
        source : str
            Its source line.
        target : str
            Its target line.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        The first ones are kept as examples, cut short: a line may be a megabyte.
        """
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
        shown = self.examples.setdefault(reason, [])
        if len(shown) < _EXAMPLES:
            cut = _EXAMPLE_CHARACTERS
            shown.append(DroppedPair(line, source[:cut], target[:cut]))

    def summary(self) -> str:
        """
        Tell the counts in one line.

        Returns
        -------
        str
            For example “28,990 pairs kept, 10 dropped (7 too long, 3 empty)”.

        Notes
        -----
        Reasons that dropped nothing are left out; the most frequent comes first.
        """
        counts = sorted(self.dropped.items(), key=lambda item: -item[1])
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in counts if number)
        kept = f"{self.kept:,} {'pair' if self.kept == 1 else 'pairs'} kept"
        return f"{kept}, {self.total_dropped:,} dropped" + (f" ({reasons})" if reasons else "")

    def table(self) -> str:
        """
        Tell what each rule dropped, with examples.

        Returns
        -------
        str
            A line for each rule, then the examples of those that dropped something.

        Notes
        -----
        For a terminal; `readable` says the same for a file.
        """
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
        return "\n".join([*lines, *(f"\nnote: {note}" for note in self.notes)])

    def readable(self) -> dict[str, Any]:
        """
        Tell what each rule dropped, with examples, for a file that people read.

        Returns
        -------
        dict of str to Any
            Ready for JSON.

        Notes
        -----
        Every rule is listed with what it means, the ones that dropped nothing too.
        """
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
        """
        Give the report as a JSON object.

        Returns
        -------
        dict of str to Any
            One key for each attribute.

        Notes
        -----
        `from_json` reads it back.
        """
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "CleaningReport":
        """
        Read what `to_json` gave.

        Parameters
        ----------
        record : mapping of str to Any
            One key for each attribute; `examples` and `notes` may be missing.

        Returns
        -------
        CleaningReport
            The same report.

        Raises
        ------
        KeyError, TypeError, ValueError
            If the record is not such an object; the reader of the file says which file.

        Notes
        -----
        Reasons that this version does not know are kept: they still were dropped.
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
        """
        Add up reports on parts of a text.

        Parameters
        ----------
        reports : iterable of CleaningReport
            One for each part.

        Returns
        -------
        CleaningReport
            What one report on the whole text would be.

        Notes
        -----
        Each part remembers its own first examples, so the first of all are among them.
        """
        whole = cls()
        for report in reports:
            whole.kept += report.kept
            whole.notes += [note for note in report.notes if note not in whole.notes]
            for reason, number in report.dropped.items():
                whole.dropped[reason] = whole.dropped.get(reason, 0) + number
            for reason, examples in report.examples.items():
                both = sorted([*whole.examples.get(reason, []), *examples], key=lambda e: e.line)
                whole.examples[reason] = both[:_EXAMPLES]
        order = [rule for rule in whole.dropped if rule in whole.examples]
        whole.examples = {rule: whole.examples[rule] for rule in order}
        return whole


def _share(part: int, whole: int) -> str:
    """Write a share in per cent."""
    return f"{part / whole if whole else 0:.2%}"


def _printable(text: str) -> str:
    """Replace what a terminal would obey instead of showing it."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
