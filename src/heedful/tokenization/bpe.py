"""
Byte-pair merging, deterministic or with dropout.

The best pair of neighboring symbols is merged wherever it occurs, then the next best, until no pair
can be merged. Sennrich et al. (2016) describe it in “Neural Machine Translation of Rare Words with
Subword Units”. BPE-dropout omits each possible merge with some probability at every step, so a word
may be split differently each time. Provilkov et al. (2020) describe it in “BPE-Dropout: Simple and
Effective Subword Regularization”.
"""

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from random import Random

Positions = tuple[int, ...]

# These states take about 100 MB; text with a few hundred thousand distinct words needs fewer.
_MOST_STATES = 200_000
# Maximum number of symbols in a cached state: a line without spaces rarely recurs, and its states
# are long.
_LONGEST_REMEMBERED = 64


class Merges:
    """
    The merges of one vocabulary.

    `rank`: returns the rank of the merge of two neighboring symbols, lowest for the best merge;
    None if they cannot be merged. `is_greedy`: whether a new pair with a lower rank is merged
    before further occurrences of the current pair.

    This class is not thread-safe, because of its cache.
    """

    def __init__(self, rank: Callable[[str, str], float | None], is_greedy: bool = False) -> None:
        self._rank, self._is_greedy = rank, is_greedy
        self._states: dict[tuple[str, ...], _State] = {}

    def merge(self, symbols: Sequence[str]) -> tuple[str, ...]:
        """Merge until no pair can be merged."""
        # All occurrences of the best pair are merged, from left to right, before the next pair is
        # considered: “x x x” becomes “xx x”. With the heap, a word of n characters takes n log n
        # steps, so even a one-megabyte line without spaces is feasible.
        parts, end = list(symbols), len(symbols)
        after, before = list(range(1, end + 1)), list(range(-1, end - 1))
        heap: list[tuple[float, int, str, str]] = []
        for left, (first, second) in enumerate(pairwise(parts)):
            if (rank := self._rank(first, second)) is not None:
                heap.append((rank, left, first, second))
        heapify(heap)
        while heap:
            rank, _, first, second = heap[0]
            merged = []
            while heap and (heap[0][0], *heap[0][2:]) == (rank, first, second):
                left = heappop(heap)[1]
                right = after[left]
                if right == end or (parts[left], parts[right]) != (first, second):
                    continue  # an earlier merge used one of the two symbols
                parts[left], parts[right] = first + second, ""
                after[left] = after[right]
                if after[left] < end:
                    before[after[left]] = left
                merged.append(left)
                if self._is_greedy:
                    break
            for left in merged:
                for place in (before[left], left):
                    if place < 0 or after[place] == end:
                        continue
                    pair = parts[place], parts[after[place]]
                    if (rank_now := self._rank(*pair)) is not None:
                        heappush(heap, (rank_now, place, *pair))
        return tuple(filter(None, parts))

    def sample(self, symbols: Sequence[str], dropout: float, generator: Random) -> tuple[str, ...]:
        """Merge with dropout."""
        # A step draws a random number for each occurrence of each pair, in the order of the pairs'
        # ranks. It stops at the first pair with an occurrence that survives, because only that pair
        # is merged. Each result is cached.
        draw = generator.random
        state = self._state(tuple(symbols))
        while True:
            for positions in state.choices:
                survivors = tuple([place for place in positions if draw() >= dropout])
                if survivors:
                    break
            else:
                return state.symbols
            following = state.following.get(survivors)
            if following is None:
                following = self._state(_merge(state.symbols, survivors))
                state.following[survivors] = following
            state = following

    def _state(self, symbols: tuple[str, ...]) -> "_State":
        """Return the state of a sequence of symbols, from the cache if possible."""
        state = self._states.get(symbols)
        if state is None:
            places: dict[tuple[float, str, str], list[int]] = {}
            for place, pair in enumerate(pairwise(symbols)):
                if (rank := self._rank(*pair)) is not None:
                    places.setdefault((rank, *pair), []).append(place)
            choices = tuple(tuple(places[key]) for key in sorted(places))
            state = _State(symbols, choices)
            if len(self._states) >= _MOST_STATES:
                self._states.clear()
            if len(symbols) <= _LONGEST_REMEMBERED:
                self._states[symbols] = state
        return state


class _State:
    """Symbols of a word, the positions of each mergeable pair, and the state after each merge."""

    __slots__ = ("choices", "following", "symbols")

    def __init__(self, symbols: tuple[str, ...], choices: tuple[Positions, ...]) -> None:
        self.symbols = symbols
        self.choices = choices
        self.following: dict[Positions, _State] = {}


def _merge(symbols: tuple[str, ...], places: Positions) -> tuple[str, ...]:
    """Merge the symbols at some positions with their right neighbors, unless merged already."""
    parts: list[str] = []
    done = 0
    for place in places:
        if place >= done:
            parts += [*symbols[done:place], symbols[place] + symbols[place + 1]]
            done = place + 2
    return (*parts, *symbols[done:])
