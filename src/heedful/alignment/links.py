"""
Word alignments as sets of links: reading, writing, symmetrizing and scoring.

A link joins a source word to a target word by their indices, counted from 0. In a file, a sentence
pair is a line such as ``0-0 1-2``, the format of Pharaoh. In a gold set ``1p2`` is a possible link
and ``1-2`` a sure link.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from heedful.errors import SettingError, TextError

Link = tuple[int, int]
Links = frozenset[Link]

SYMMETRIZATIONS = (
    "intersection",
    "union",
    "grow-diag",
    "grow-diag-final",
    "grow-diag-final-and",
)
"""Methods to combine two directions."""

_LINK = re.compile(r"([0-9]+)([-p])([0-9]+)")
_NEIGHBORS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


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
        return LinkCounts(
            self.predicted + other.predicted,
            self.sure + other.sure,
            self.predicted_sure + other.predicted_sure,
            self.predicted_possible + other.predicted_possible,
        )

    @property
    def precision(self) -> float:
        """Share of the found links that are sure or possible; 1 if none was found."""
        return self.predicted_possible / self.predicted if self.predicted else 1.0

    @property
    def recall(self) -> float:
        """Share of the sure links that were found; 1 if there are none."""
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


def read_links(line: str, location: str = "a line of links") -> Links:
    """
    Parse the links of a sentence pair.

    `line`: such as ``0-0 1-2``; empty for a pair without links.

    Raises `TextError` for a malformed line.
    """
    gold = read_gold(line, location)
    if gold.sure != gold.possible:
        raise TextError(
            f"{location} must hold links such as 0-0 1-2, but holds possible links such as 1p2, "
            "which are allowed only in gold sets."
        )
    return gold.sure


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
                f"{location} must hold links such as 0-0 1-2 (source word, target word, counted "
                f"from 0), but holds {part!r}."
            )
        link = int(match[1]), int(match[3])
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return GoldLinks(frozenset(sure), frozenset(possible))


def write_links(links: Iterable[Link]) -> str:
    """Format the links of a sentence pair as a line that `read_links` can read."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def write_gold(gold: GoldLinks) -> str:
    """Format the gold links of a sentence pair as a line that `read_gold` can read."""
    marked = ((i, j, "-" if (i, j) in gold.sure else "p") for i, j in gold.possible | gold.sure)
    return " ".join(f"{source}{mark}{target}" for source, target, mark in sorted(marked))


def symmetrize(forward: Links, backward: Links, how: str = "grow-diag-final") -> Links:
    """Combine the links of two directions by one of the `SYMMETRIZATIONS`."""
    # Koehn et al. (2005) as implemented by Moses' ``symal``. grow-diag begins with the intersection
    # and adds neighbors from the union while one of their words has no link. Then final adds links
    # of either direction if one of their words has no link, final-and if both have none.
    if how not in SYMMETRIZATIONS:
        raise SettingError(
            f"two alignments can be combined by {', '.join(SYMMETRIZATIONS)}, but not by {how!r}; "
            "choose one of these methods."
        )
    if how == "intersection":
        return forward & backward
    if how == "union":
        return forward | backward
    growing = _Growing(forward & backward)
    growing.grow(forward | backward)
    if how != "grow-diag":
        for direction in (forward, backward):
            growing.finish(direction, both=how.endswith("and"))
    return frozenset(growing.links)


class _Growing:
    """A growing set of links, with the linked source and target words."""

    def __init__(self, links: Links) -> None:
        self.links = set(links)
        self.sources = {source for source, _ in links}
        self.targets = {target for _, target in links}

    def add(self, link: Link) -> None:
        """Add a link."""
        self.links.add(link)
        self.sources.add(link[0])
        self.targets.add(link[1])

    def grow(self, union: Links) -> None:
        """Add neighbors from the union, ordered by target word, until no more can be added."""
        grown = True
        while grown:
            before = len(self.links)
            for link in sorted(union, key=_by_target):
                if link in self.links:
                    for neighbor in filter(union.__contains__, _neighbors(link)):
                        if not (neighbor[0] in self.sources and neighbor[1] in self.targets):
                            self.add(neighbor)
            grown = len(self.links) > before

    def finish(self, direction: Links, both: bool) -> None:
        """Add links of one direction if one word has no link, or with `both` if neither has one."""
        for link in sorted(direction, key=_by_target):
            lacking = (link[0] not in self.sources) + (link[1] not in self.targets)
            if lacking == 2 or (lacking and not both):
                self.add(link)


def _by_target(link: Link) -> Link:
    """Return the key that sorts links in the order of symal."""
    return link[1], link[0]


def _neighbors(link: Link) -> Iterator[Link]:
    """List the neighbors of a link: above, left, below, right, then the corners."""
    for target, source in _NEIGHBORS:
        yield link[0] + source, link[1] + target
