"""
Byte-level BPE, the subwords of GPT-2 and BART.

::

    text        it's  naïve
    words       it | 's | · | ·naïve           by GPT-2's regular expression; · is a space
    symbols     Ġ n a Ã ¯ v e                  one printable character for each UTF-8 byte
    subwords    Ġna Ã¯ ve                      symbols merged in the order of a list

Every text can be encoded without loss. The best merge is applied first, from left to right, as in
the library `tokenizers`.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache
from itertools import chain

from heedful.errors import TokenizerError
from heedful.tokenization.bpe import Merges
from heedful.tokenization.bpe_codes import VERSION_MARK

SPACE_SYMBOL = "Ġ"
"""The symbol for a space."""

# GPT-2's expression over character classes: ``a`` stands for letters, ``1`` for numbers, a tab for
# white space except spaces, a dot for all other characters. Letters of contractions stand for
# themselves.
_WORDS = re.compile(r"'(?:[stmd]|re|ve|ll)| ?[adelmrstv]+| ?1+| ?[.']+|[ \t]+(?![^ \t])|[ \t]+")
_THEMSELVES = frozenset("'delmrstv ")
_SPACES = frozenset("\t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {
    chr(number) for number in range(0x2000, 0x200B)
}
# Letters and numbers of Unicode 15 and 16, which the tables of an older Python lack.
_NEW_LETTERS = (
    "1c89-1c8a a7cb-a7cd a7da-a7dc 105c0-105f3 10d4a-10d65 10d6f-10d85 10ec2-10ec4 1123f-11240 "
    "11380-11389 1138b 1138e 11390-113b5 113b7 113d1 113d3 11bc0-11be0 11f02 11f04-11f10 "
    "11f12-11f33 1342f 13441-13446 13460-143fa 16100-1611d 16d40-16d6c 18cff 1b132 1b155 "
    "1df25-1df2a 1e030-1e06d 1e4d0-1e4eb 1e5d0-1e5ed 1e5f0 2b739 2ebf0-2ee5d 31350-323af"
)
_NEW_NUMBERS = (
    "10d40-10d49 116d0-116e3 11bf0-11bf9 11f50-11f59 16130-16139 16d70-16d79 1ccf0-1ccf9 "
    "1d2c0-1d2d3 1e4f0-1e4f9 1e5f1-1e5fa"
)
_CACHED_WORDS = 1 << 18


class _Classes(dict[int, str]):
    """The class of each character, computed on first use."""

    def __missing__(self, number: int) -> str:
        character = chr(number)
        category = unicodedata.category(character)
        if character in _THEMSELVES:
            kind = character
        elif category[0] == "L" or (category == "Cn" and number in _ranges(_NEW_LETTERS)):
            kind = "a"
        elif category[0] == "N" or (category == "Cn" and number in _ranges(_NEW_NUMBERS)):
            kind = "1"
        else:
            kind = "\t" if character in _SPACES else "."
        self[number] = kind
        return kind


_CLASSES = _Classes()


class ByteLevelBpe:
    """
    The merges of a ``merges.txt``.

    `known`: the vocabulary; bytes outside it are dropped. `is_spaced`: whether a space is added
    before a text that does not begin with one.

    Raises `TokenizerError` if a line is not a merge or uses subwords outside the vocabulary.
    """

    def __init__(self, content: bytes, known: AbstractSet[str], is_spaced: bool = False) -> None:
        ranks: dict[tuple[str, str], int] = {}
        for rank, (number, first, second) in enumerate(_parse(content)):
            if not known >= {first, second, first + second}:
                raise TokenizerError(
                    "Merges must join two subwords of the vocabulary into a third, but line "
                    f"{number} is {f'{first} {second}'[:60]!r}; give the merges and the vocabulary "
                    "of one model."
                )
            ranks[first, second] = rank  # if a merge is repeated, its last rank is used
        self._known, self._is_spaced = known, is_spaced
        self._merges = Merges(lambda *pair: ranks.get(pair), is_greedy=True)
        self._cut_word = lru_cache(_CACHED_WORDS)(self._merge)

    def cut(self, text: str) -> list[str]:
        """Split a text into subwords."""
        if self._is_spaced and text and not text.startswith(" "):
            text = f" {text}"
        return [piece for word in words_of_text(text) for piece in self._cut_word(word)]

    def _merge(self, word: str) -> tuple[str, ...]:
        """Split a word."""
        symbols = [symbol for symbol in to_symbols(word) if symbol in self._known]
        return self._merges.merge(symbols)


def words_of_text(text: str) -> list[str]:
    """
    Split a text into words by GPT-2's regular expression; nothing is lost.

    >>> words_of_text("It's 3  dogs!")
    ['It', "'s", ' 3', ' ', ' dogs', '!']
    """
    classes = text.translate(_CLASSES)
    return [text[match.start() : match.end()] for match in _WORDS.finditer(classes)]


def to_symbols(text: str) -> str:
    """
    Write each byte of a text as a printable character.

    >>> to_symbols(" né")
    'ĠnÃ©'
    """
    return text.encode().decode("latin-1").translate(_alphabet())


def from_symbols(symbols: str) -> str:
    """Join symbols into text; invalid UTF-8 becomes “�”, and other characters stay."""
    numbers = _bytes_of_symbols()
    return b"".join(
        numbers[symbol] if symbol in numbers else symbol.encode() for symbol in symbols
    ).decode(errors="replace")


@cache
def _alphabet() -> dict[int, str]:
    """Choose the character for each byte: its own if visible, else a character from U+0100 on."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (number for number in range(256) if number not in visible)
    return {number: chr(number) for number in visible} | {
        number: chr(256 + place) for place, number in enumerate(others)
    }


@cache
def _bytes_of_symbols() -> Mapping[str, bytes]:
    """Invert the alphabet."""
    return {symbol: bytes([number]) for number, symbol in _alphabet().items()}


def _parse(content: bytes) -> Iterator[tuple[int, str, str]]:
    """Read merges, each with its line number."""
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise TokenizerError(
            f"Merges must be in UTF-8, but the byte at offset {error.start:,} is invalid; copy "
            "merges.txt again."
        ) from error
    for number, line in enumerate(lines, start=1):
        if line.startswith(VERSION_MARK) or not line:
            continue
        parts = line.split(" ")
        if len(parts) != 2 or not all(parts):
            raise TokenizerError(
                "Merges must be two subwords per line with one space between them, but line "
                f"{number} is {line[:60]!r}; copy merges.txt again."
            )
        yield number, parts[0], parts[1]


@cache
def _ranges(listed: str) -> frozenset[int]:
    """Read ranges of hexadecimal numbers."""
    parts = (part.partition("-") for part in listed.split())
    ranges = (range(int(first, 16), int(last or first, 16) + 1) for first, _, last in parts)
    return frozenset(chain.from_iterable(ranges))
