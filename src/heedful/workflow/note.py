"""
What is said about a translation beside its text: which word translates which.

No torch here, so that translations can be held where there is none.
"""

from dataclasses import dataclass
from typing import NamedTuple

from heedful.search.links import write_links


@dataclass(frozen=True)
class Alignment:
    """
    Hold the words of a sentence pair and which translates which.

    Attributes
    ----------
    source_words : tuple of str
        What spaces set apart in the source.
    target_words : tuple of str
        What spaces set apart in the translation.
    links : tuple of (int, int)
        Numbers of a source word and of a target word, counted from 0, in order.

    Notes
    -----
    ``str(alignment)`` is the line that alignment files have: ``0-0 1-2``.
    """

    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    links: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        return write_links(self.links)


class Note(NamedTuple):
    """
    Hold what is said about one translation beside its text.

    Attributes
    ----------
    alignment : Alignment, optional
        If it was asked for.
    text : str, optional
        The text with its unknown words replaced, if it has any and that was asked for.

    Notes
    -----
    What a `Translation` is completed with.
    """

    alignment: Alignment | None = None
    text: str | None = None
