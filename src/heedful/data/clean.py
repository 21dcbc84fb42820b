"""
Which sentence pairs are left out of training, and how many for which reason.

Lengths are counted in subwords, because that is what costs memory and time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

REASONS = ("too long", "empty", "ratio")


@dataclass(frozen=True)
class PairFilter:  # numpydoc ignore=PR02
    """
    Decide which pairs are kept.

    Attributes
    ----------
    max_length : int
        The most subwords either side may have, without special symbols.
    max_ratio : float or None
        The most times one side may be longer than the other; None for no limit.
    """

    max_length: int
    max_ratio: float | None

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
        if self.max_ratio is not None and longer > self.max_ratio * shorter:
            return "ratio"
        return None


@dataclass
class CleaningReport:  # numpydoc ignore=PR02
    """
    Count the pairs that were kept and dropped.

    Attributes
    ----------
    kept : int, default 0
        Pairs kept.
    dropped : dict of str to int, optional
        Pairs dropped, by reason.
    """

    kept: int = 0
    dropped: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))

    @property
    def total_dropped(self) -> int:
        """Pairs dropped for any reason."""
        return sum(self.dropped.values())

    def count(self, reason: str | None) -> bool:
        """
        Count one pair.

        Parameters
        ----------
        reason : str or None
            What `PairFilter.reason` said of it.

        Returns
        -------
        bool
            True if the pair is kept.

        Notes
        -----
        Returning the decision lets the caller count and decide in one line.
        """
        if reason is None:
            self.kept += 1
            return True
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
        return False

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

    def to_json(self) -> dict[str, Any]:
        """
        Give the counts as a JSON object.

        Returns
        -------
        dict of str to Any
            The keys `kept` and `dropped`.

        Notes
        -----
        `from_json` reads it back.
        """
        return {"kept": self.kept, "dropped": dict(self.dropped)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "CleaningReport":
        """
        Read what `to_json` gave.

        Parameters
        ----------
        record : mapping of str to Any
            The keys `kept` and `dropped`.

        Returns
        -------
        CleaningReport
            The same counts.

        Raises
        ------
        KeyError, TypeError, ValueError
            If the record is not such an object; the reader of the file says which file.

        Notes
        -----
        Reasons that this version does not know are kept: they still were dropped.
        """
        dropped = {str(reason): int(number) for reason, number in dict(record["dropped"]).items()}
        return cls(kept=int(record["kept"]), dropped=dropped)
