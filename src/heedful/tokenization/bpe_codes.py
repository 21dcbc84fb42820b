"""
Byte-pair codes that subword-nmt learned, read and applied here.

A codes file lists one merge a line, the best first: two symbols with a space between them. The
symbol ``</w>`` marks the end of a word; version 0.1 counts it as a symbol of its own, version 0.2
as part of the last character. Words are what stands between spaces, and every subword but a word's
last is written with ``@@`` behind it.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from random import Random

from heedful.errors import TokenizerError
from heedful.tokenization.bpe import Merges

SEPARATOR = "@@"
"""Stands behind every subword that is not the last of its word."""
VERSION_MARK = "#version:"
"""How the first line of a codes file begins, if it says its version."""

_END = "</w>"
_CACHED_WORDS = 1 << 18
_JOINTS = re.compile(f"{SEPARATOR} |{SEPARATOR} ?$")


class BpeCodes:
    """
    The merges of a codes file.

    Parameters
    ----------
    content : bytes
        The file.
    known : collection of str, optional
        Subwords, written with their ``@@``, that may come out; any other is split again by the
        merge that made it, down to single characters. By default all may.

    Raises
    ------
    TokenizerError
        If a line is no merge or the version is unknown; the message names the line.

    Notes
    -----
    Equal to ``subword-nmt apply-bpe`` line for line; `known` is its ``--vocabulary``.
    """

    def __init__(self, content: bytes, known: Collection[str] | None = None) -> None:
        self.content = content
        self.known = None if known is None else frozenset(known)
        version, pairs = _parse(content)
        self._end_apart = version == "0.1"
        # Of a merge that is there twice the first counts, and so does the first way to a symbol.
        self._ranks = {pair: rank for rank, pair in reversed(list(enumerate(pairs)))}
        self._parts = {first + second: (first, second) for first, second in reversed(pairs)}
        self._merges = Merges(lambda first, second: self._ranks.get((first, second)))
        self.cut = lru_cache(_CACHED_WORDS)(self._cut)

    def sample(self, word: str, dropout: float, generator: Random) -> tuple[str, ...]:
        """
        Cut a word with BPE-dropout.

        Parameters
        ----------
        word : str
            No space in it.
        dropout : float
            Probability that a possible merge is left out of a step.
        generator : Random
            Where chance comes from.

        Returns
        -------
        tuple of str
            Its subwords, this time, each but the last with ``@@``.

        Notes
        -----
        `cut` is the same without chance.
        """
        return self._finished(self._merges.sample(self._symbols(word), dropout, generator))

    def apply(self, line: str) -> str:
        """
        Cut the words of a line.

        Parameters
        ----------
        line : str
            Tokenised text.

        Returns
        -------
        str
            What subword-nmt writes: single spaces inside, those at both ends as they were.

        Notes
        -----
        Only the space parts words; a no-break space is a character like any other.
        """
        inner = line.strip("\r\n ")
        if not inner:
            return line
        before, _, after = line.partition(inner)
        pieces = [piece for word in words_of(inner) for piece in self.cut(word)]
        return before + " ".join(pieces) + after

    def possible_subwords(self, words: Iterable[str]) -> set[str]:
        """
        List every subword that dropout can cut some words into.

        Parameters
        ----------
        words : iterable of str
            The different words of a text.

        Returns
        -------
        set of str
            Single characters and results of merges, with their ``@@``.

        Notes
        -----
        A vocabulary for sampled subwords has to hold them all, or what is sampled is unknown.
        """
        results = {symbol for symbol in self._parts if symbol != _END}
        longest = max((len(symbol.removesuffix(_END)) for symbol in results), default=1)
        found = set()
        for word in words:
            end = len(word)
            for first in range(end):
                for last in range(first + 1, min(first + longest, end) + 1):
                    symbol = word[first:last]
                    if last < end and (last == first + 1 or symbol in results):
                        found.add(symbol + SEPARATOR)
                    elif last == end and self._ends(symbol, results):
                        found.add(symbol)
        return found

    def _ends(self, symbol: str, results: Collection[str]) -> bool:
        """Tell whether a symbol can be the last of a word."""
        if len(symbol) == 1 or symbol + _END in results:
            return True
        return self._end_apart and symbol in results

    def _cut(self, word: str) -> tuple[str, ...]:
        """Cut a word, the same way every time; remembered as `cut`."""
        return self._finished(self._merges.merge(self._symbols(word)))

    def _symbols(self, word: str) -> list[str]:
        """Spell a word as the merges know it."""
        if len(word) < 2:
            return [word]
        return [*word, _END] if self._end_apart else [*word[:-1], word[-1] + _END]

    def _finished(self, symbols: tuple[str, ...]) -> tuple[str, ...]:
        """Take the mark of the end off and write the separators."""
        *inner, last = symbols
        last = inner.pop() if inner and last == _END else last.removesuffix(_END)
        if self.known is None:
            return (*(symbol + SEPARATOR for symbol in inner), last)
        parts = [piece for symbol in inner for piece in self._split(symbol, self.known)]
        return (*parts, *self._split(last, self.known, final=True))

    def _split(self, text: str, known: Collection[str], final: bool = False) -> Iterator[str]:
        """Undo merges until every part is known or a single character."""
        piece = text if final else text + SEPARATOR
        parts = None if piece in known else self._parts.get(text + _END if final else text)
        if parts is not None and parts[1] == _END:
            parts = self._parts.get(parts[0])  # in version 0.1 the end is a symbol, no subword
        if parts is None:
            yield piece
        else:
            yield from self._split(parts[0], known)
            yield from self._split(parts[1].removesuffix(_END), known, final)


def words_of(line: str) -> list[str]:
    """
    Part a line into words at its spaces.

    Parameters
    ----------
    line : str
        Tokenised text.

    Returns
    -------
    list of str
        The words, none of them empty.

    Notes
    -----
    As subword-nmt does: no other white space parts words.
    """
    return [word for word in line.strip("\r\n ").split(" ") if word]


def join_pieces(pieces: Iterable[str]) -> str:
    """
    Put subwords together again.

    Parameters
    ----------
    pieces : iterable of str
        Subwords with their ``@@``.

    Returns
    -------
    str
        Words with single spaces between them.

    Notes
    -----
    The ``sed -r 's/(@@ )|(@@ ?$)//g'`` of subword-nmt.

    Examples
    --------
    >>> join_pieces(["ir@@", "on", "c@@", "ement"])
    'iron cement'
    """
    return _JOINTS.sub("", " ".join(pieces))


def _parse(content: bytes) -> tuple[str, list[tuple[str, str]]]:
    """Read version and merges."""
    try:
        lines = content.decode("utf-8").rstrip("\n").split("\n")
    except UnicodeDecodeError as error:
        raise TokenizerError(
            f"Byte-pair codes must be UTF-8 text, but byte {error.start:,} is none; give the file "
            "that subword-nmt wrote."
        ) from error
    version, first = "0.1", 0
    if lines[0].startswith(VERSION_MARK):
        version, first = lines[0].split()[-1].removeprefix(VERSION_MARK), 1
        if version not in ("0.1", "0.2"):
            raise TokenizerError(
                f"Byte-pair codes must be of version 0.1 or 0.2, but these say {version!r}; learn "
                "them again with subword-nmt 0.3."
            )
    pairs = []
    for number, line in enumerate(lines[first:], start=first + 1):
        parts = line.strip("\r ").split(" ")
        if len(parts) != 2 or not all(parts):
            raise TokenizerError(
                "Byte-pair codes must be two symbols a line with one space between them, but line "
                f"{number} is {line[:60]!r}; give the file that subword-nmt wrote."
            )
        pairs.append((parts[0], parts[1]))
    return version, pairs
