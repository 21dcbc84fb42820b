"""
Word alignments as sets of links: reading, writing and scoring.

A link joins a source word to a target word by their indices, counted from 0. In a file, a sentence
pair is a line such as ``0-0 1-2``, in the Pharaoh format. In a gold set ``1p2`` is a possible link
and ``1-2`` a sure link.
"""

import re
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import NamedTuple

from heedful.errors import TextError

Link = tuple[int, int]
Links = frozenset[Link]

_LINK = re.compile(r"([0-9]+)([-p])([0-9]+)")


class GoldLinks(NamedTuple):
    """
    Gold links of a sentence pair.

    Annotators may disagree about function words and free translations (Och and Ney 2003, section
    6).
    """

    sure: Links
    """Links that must be found."""
    possible: Links
    """Links that may be found, the sure ones included."""


@dataclass(frozen=True)
class LinkCounts:
    """Counts that compare found links with gold links."""

    predicted: int = 0
    """Found links, ``|A|``."""
    sure: int = 0
    """Sure gold links, ``|S|``."""
    predicted_sure: int = 0
    """Found links that are sure, ``|A ∩ S|``."""
    predicted_possible: int = 0
    """Found links that are possible, ``|A ∩ P|``."""

    def __add__(self, other: "LinkCounts") -> "LinkCounts":
        return LinkCounts(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @property
    def precision(self) -> float:
        """Share of the found links that are sure or possible; 1 if none was found."""
        return self.predicted_possible / self.predicted if self.predicted else 1.0

    @property
    def recall(self) -> float:
        """Share of the sure links that were found; 1 if there are no sure links."""
        return self.predicted_sure / self.sure if self.sure else 1.0

    @property
    def error_rate(self) -> float:
        """The alignment error rate, ``1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)``; 0 is best."""
        total = self.predicted + self.sure
        return 1.0 - (self.predicted_sure + self.predicted_possible) / total if total else 0.0


def count_links(predicted: Links, gold: GoldLinks) -> LinkCounts:
    """
    Compare the links of a sentence pair with its gold links.

    Och and Ney (2003), “A Systematic Comparison of Various Statistical Alignment Models”.

    >>> gold = GoldLinks(sure=frozenset({(0, 0)}), possible=frozenset({(0, 0), (1, 1)}))
    >>> count_links(frozenset({(0, 0), (1, 1), (2, 2)}), gold).error_rate
    0.25
    """
    return LinkCounts(
        len(predicted),
        len(gold.sure),
        len(predicted & gold.sure),
        len(predicted & (gold.possible | gold.sure)),
    )


def read_gold(line: str, location: str = "a line of gold links") -> GoldLinks:
    """
    Parse the gold links of a sentence pair.

    Raises `TextError` for a malformed line. Published gold sets mark possible links with “p”
    (Zenkel et al. 2019).
    """
    sure, possible = set(), set()
    for part in line.split():
        match = _LINK.fullmatch(part)
        if match is None:
            raise TextError(
                f"{location} must contain links such as 0-0 1-2 (source word, target word, "
                f"counted from 0), but contains {part!r}."
            )
        link = int(match[1]), int(match[3])
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return GoldLinks(frozenset(sure), frozenset(possible))


def write_links(links: Iterable[Link]) -> str:
    """Format the links of a sentence pair as a line that `read_gold` can read."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def write_gold(gold: GoldLinks) -> str:
    """Format the gold links of a sentence pair as a line that `read_gold` can read."""
    marked = ((i, j, "-" if (i, j) in gold.sure else "p") for i, j in gold.possible | gold.sure)
    return " ".join(f"{source}{mark}{target}" for source, target, mark in sorted(marked))
