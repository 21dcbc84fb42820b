"""
New subwords that extend a trained vocabulary.

Text is first split into old subwords. Then byte-pair learning continues: the most frequent pair of
neighboring subwords within words is merged, then the next (Sennrich et al. 2016). Each new subword
therefore consists of old subwords, which can initialize its embedding. Pairs that occur in text
that must stay unchanged are never merged, so this text is split as before.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple
from unicodedata import category

from heedful.tokenization.train import SPACE

Word = tuple[str, ...]
Pair = tuple[str, str]

# A pair that occurs once may be a mistake.
_FEWEST = 2
# Maximum length of a subword; in a line of one repeated letter, each merge would double it.
_LONGEST = 64
# These two joiners are parts of words in Indic scripts and Persian, like letters and marks.
_JOINERS = "\u200c\u200d"


class NewPiece(NamedTuple):
    """A subword to add to a vocabulary."""

    piece: str
    """Its text; a leading space is written as in sentencepiece."""
    parts: tuple[str, ...]
    """The old subwords or bytes that spell it; empty if there are none."""
    halves: Pair | None = None
    """The two subwords that were merged; None for a character or a word."""


def words_in(rows: Iterable[Sequence[str]]) -> Counter[Word]:
    """Count words, each a tuple of subwords; a word begins where a subword begins with a space."""
    words: Counter[Word] = Counter()
    for row in rows:
        start = 0
        for place in range(1, len(row) + 1):
            if place == len(row) or row[place].startswith(SPACE):
                words[tuple(row[start:place])] += 1
                start = place
    return words


def learn_pieces(
    words: Counter[Word],
    unchanged: Counter[Word],
    known: Collection[str],
    count: int,
    split: Callable[[str], tuple[str, ...]],
) -> list[NewPiece]:
    """
    Learn at most `count` new subwords from some words.

    `words`: words of the new language, split by the old vocabulary into `known` subwords and single
    unknown characters. `unchanged`: words that must be split as before. `split`: returns the old
    subwords that spell an unknown character, such as its bytes.

    At most half of `count` are unknown characters, the most frequent first. The same words always
    give the same subwords.
    """
    seen = {symbol for word in unchanged for symbol in word}
    pieces = learn_characters(words, seen, known, count // 2, split)
    parts = {new.piece: new.parts for new in pieces}
    parts |= {symbol: (symbol,) for word in words for symbol in word if symbol in known}
    banned = {pair for word in unchanged for pair in pairwise(word)}

    def is_allowed(pair: Pair) -> bool:
        joined = "".join(pair)
        return (
            pair not in banned
            and all(half in parts for half in pair)
            and joined not in known
            and joined not in parts
            and len(joined) <= _LONGEST
            and _is_word(joined)
        )

    for left, right in _merges(words, is_allowed):
        if len(pieces) >= count:
            break
        parts[left + right] = parts[left] + parts[right]
        pieces.append(NewPiece(left + right, parts[left + right], (left, right)))
    return pieces


def learn_characters(
    words: Counter[Word],
    seen: Collection[str],
    known: Collection[str],
    count: int,
    split: Callable[[str], tuple[str, ...]],
) -> list[NewPiece]:
    """List at most `count` unknown characters of some words, except those in `seen`."""
    letters: Counter[str] = Counter()
    for word, times in words.items():
        for symbol in word:
            if symbol not in known and symbol not in seen and _is_character(symbol):
                letters[symbol] += times
    return [NewPiece(letter, split(letter)) for letter in _most_frequent(letters, count)]


def learn_words(
    words: Counter[Word],
    unchanged: Counter[Word],
    known: Collection[str],
    count: int,
) -> list[NewPiece]:
    """List at most `count` unknown words, for a vocabulary of words."""
    seen = {"".join(word) for word in unchanged}
    counts: Counter[str] = Counter()
    for word, times in words.items():
        joined = "".join(word)
        if joined in known or joined in seen or len(joined) > _LONGEST:
            continue
        if joined.strip(SPACE):
            counts[joined] += times
    return [NewPiece(word, ()) for word in _most_frequent(counts, count)]


def _merges(words: Counter[Word], may_merge: Callable[[Pair], bool]) -> Iterator[Pair]:
    """Repeatedly yield the most frequent pair that may be merged, then merge it in all words."""
    rows, times = [list(word) for word in words], list(words.values())
    counts: Counter[Pair] = Counter()
    places: defaultdict[Pair, set[int]] = defaultdict(set)
    for number, row in enumerate(rows):
        for pair in pairwise(row):
            counts[pair] += times[number]
            places[pair].add(number)
    # An entry with an outdated count is dropped; the current count has an entry of its own.
    heap = [(-count, pair) for pair, count in counts.items() if count >= _FEWEST]
    heapify(heap)
    while heap:
        count, pair = heappop(heap)
        if counts[pair] != -count or not may_merge(pair):
            continue
        yield pair
        changed: set[Pair] = set()
        for number in sorted(places.pop(pair)):
            row = rows[number]
            rows[number] = merged = _merge(row, pair)
            for symbols, sign in ((row, -1), (merged, 1)):
                for neighbors in pairwise(symbols):
                    counts[neighbors] += sign * times[number]
                    changed.add(neighbors)
            for neighbors in pairwise(merged):
                places[neighbors].add(number)
        for neighbors in changed:
            if counts[neighbors] >= _FEWEST:
                heappush(heap, (-counts[neighbors], neighbors))


def _merge(row: Sequence[str], pair: Pair) -> list[str]:
    """Merge a pair wherever it occurs, from left to right."""
    merged: list[str] = []
    place = 0
    while place < len(row):
        if tuple(row[place : place + 2]) == pair:
            merged.append("".join(pair))
            place += 2
        else:
            merged.append(row[place])
            place += 1
    return merged


def _most_frequent(counts: Counter[str], count: int) -> list[str]:
    """List the items that occur more than once, the most frequent first."""
    often = [text for text, times in counts.items() if times >= _FEWEST]
    return sorted(often, key=lambda text: (-counts[text], text))[:count]


def _is_character(symbol: str) -> bool:
    """Whether a symbol is one visible character and not a special character of sentencepiece."""
    return len(symbol) == 1 and symbol.isprintable() and symbol not in (" ", SPACE, "\u2585")


def _is_word(text: str) -> bool:
    """Whether a subword is part of a word, not a number or punctuation."""
    letters = text.removeprefix(SPACE)
    return all(letter in _JOINERS or category(letter)[0] in "LM" for letter in letters)
