"""
Reading and application of byte-pair codes that subword-nmt learned.

A codes file lists one merge per line, the best first: two symbols with a space between them. The
symbol ``</w>`` marks the end of a word. Version 0.1 treats it as a separate symbol, version 0.2 as
part of the last character. Words are separated by spaces, and every subword but a word's last ends
in ``@@``.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from random import Random

from heedful.errors import TokenizerError
from heedful.tokenization.bpe import Merges

SEPARATOR = "@@"
"""Suffix of every subword that is not the last of its word."""
VERSION_MARK = "#version:"
"""Beginning of the first line of a codes file, if it names its version."""

_END = "</w>"
_CACHED_WORDS = 1 << 18
_JOINTS = re.compile(f"{SEPARATOR} |{SEPARATOR} ?$")


class BpeCodes:
    """
    The BPE merges of a codes file.

    The output equals that of ``subword-nmt apply-bpe``; `known` is its ``--vocabulary``.

    Raises `TokenizerError` if a line is not a merge, or if the version is unknown.
    """

    def __init__(self, content: bytes, known: Collection[str] | None = None) -> None:
        self.content = content
        self.known = None if known is None else frozenset(known)
        version, pairs = _parse(content)
        self._end_apart = version == "0.1"
        # If a merge is repeated, or if several merges form the same symbol, the first is used.
        self._ranks = {pair: rank for rank, pair in reversed(list(enumerate(pairs)))}
        self._parts = {first + second: (first, second) for first, second in reversed(pairs)}
        self._merges = Merges(lambda first, second: self._ranks.get((first, second)))
        self.cut = lru_cache(_CACHED_WORDS)(self._cut)

    def sample(self, word: str, dropout: float, generator: Random) -> tuple[str, ...]:
        """Split a word with BPE-dropout. `cut` splits without dropout."""
        return self._finish(self._merges.sample(self._symbols(word), dropout, generator))

    def pieces(self, line: str) -> list[str]:
        """List the subwords of a line."""
        return [piece for word in words_of(line) for piece in self.cut(word)]

    def possible_subwords(self, words: Iterable[str]) -> set[str]:
        """Return all subwords into which dropout can split some words."""
        # A vocabulary for sampled subwords must contain all of them, or samples become unknown.
        results = {symbol for symbol in self._parts if symbol != _END}
        longest = max((len(symbol.removesuffix(_END)) for symbol in results), default=1)
        subwords = set()
        for word in words:
            end = len(word)
            for first in range(end):
                for last in range(first + 1, min(first + longest, end) + 1):
                    symbol = word[first:last]
                    if last < end and (last == first + 1 or symbol in results):
                        subwords.add(symbol + SEPARATOR)
                    elif last == end and self._ends(symbol, results):
                        subwords.add(symbol)
        return subwords

    def _ends(self, symbol: str, results: Collection[str]) -> bool:
        """Whether a symbol can end a word."""
        if len(symbol) == 1 or symbol + _END in results:
            return True
        return self._end_apart and symbol in results

    def _cut(self, word: str) -> tuple[str, ...]:
        """Split a word deterministically; cached in `cut`."""
        return self._finish(self._merges.merge(self._symbols(word)))

    def _symbols(self, word: str) -> list[str]:
        """Split a word into the symbols from which merging starts."""
        if len(word) < 2:
            return [word]
        return [*word, _END] if self._end_apart else [*word[:-1], word[-1] + _END]

    def _finish(self, symbols: tuple[str, ...]) -> tuple[str, ...]:
        """Remove the end-of-word mark and add the separators."""
        *inner, last = symbols
        last = inner.pop() if inner and last == _END else last.removesuffix(_END)
        if self.known is None:
            return (*(symbol + SEPARATOR for symbol in inner), last)
        parts = [piece for symbol in inner for piece in self._split(symbol, self.known)]
        return (*parts, *self._split(last, self.known, final=True))

    def _split(self, text: str, vocabulary: Collection[str], final: bool = False) -> Iterator[str]:
        """Undo merges until every part is in the vocabulary or is a single character."""
        piece = text if final else text + SEPARATOR
        parts = None if piece in vocabulary else self._parts.get(text + _END if final else text)
        if parts is not None and parts[1] == _END:
            parts = self._parts.get(
                parts[0]
            )  # in version 0.1 the end is a symbol but not a subword
        if parts is None:
            yield piece
        else:
            yield from self._split(parts[0], vocabulary)
            yield from self._split(parts[1].removesuffix(_END), vocabulary, final)


def words_of(line: str) -> list[str]:
    """Split a line into words at its spaces."""
    return [word for word in line.strip("\r\n ").split(" ") if word]


def join_pieces(pieces: Iterable[str]) -> str:
    """
    Join subwords into text.

    Does the same as ``sed -r 's/(@@ )|(@@ ?$)//g'``, which subword-nmt recommends.

    >>> join_pieces(["ir@@", "on", "c@@", "ement"])
    'iron cement'
    """
    return _JOINTS.sub("", " ".join(pieces))


def _parse(content: bytes) -> tuple[str, list[tuple[str, str]]]:
    """Parse version and merges."""
    try:
        lines = content.decode("utf-8").rstrip("\n").split("\n")
    except UnicodeDecodeError as error:
        raise TokenizerError(
            f"Byte-pair codes must be UTF-8 text, but the byte at offset {error.start:,} is "
            "invalid; give the file that subword-nmt wrote."
        ) from error
    version, first = "0.1", 0
    if lines[0].startswith(VERSION_MARK):
        version, first = lines[0].split()[-1].removeprefix(VERSION_MARK), 1
        if version not in ("0.1", "0.2"):
            raise TokenizerError(
                f"Byte-pair codes must be of version 0.1 or 0.2, but these are of {version!r}; "
                "learn them again with subword-nmt 0.3."
            )
    pairs = []
    for number, line in enumerate(lines[first:], start=first + 1):
        parts = line.strip("\r ").split(" ")
        if len(parts) != 2 or not all(parts):
            raise TokenizerError(
                "Byte-pair codes must be two symbols per line with one space between them, but "
                f"line {number} is {line[:60]!r}; give the file that subword-nmt wrote."
            )
        pairs.append((parts[0], parts[1]))
    return version, pairs
