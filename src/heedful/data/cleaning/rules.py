"""
Filter rules: empty side, exact and near test-set overlap, wrong script, duplicate.

They are tried in the order of `RULES` in `heedful.data.cleaning.filter`. Duplicates are detected
within one pass over the text, from its first line on.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from jaxtyping import Bool, UInt64

from heedful.data.cleaning.scripts import scripts_of, share_in
from heedful.data.overlap.lines import HeldOutLines
from heedful.data.overlap.words import normalize_line
from heedful.text.corpus import read_lines
from heedful.text.file_formats import TextSource
from heedful.tokenization.special_symbols import split_tag

Hashes = UInt64[np.ndarray, " entries"]
# The scripts of a language; None if they are unknown.
_Scripts = frozenset[str] | None
# Few enough pairs for lines of a megabyte, and enough pairs to make `SeenHashes` fast.
_JUDGED_PAIRS = 1000


def hash_texts(texts: Iterable[str]) -> Hashes:
    """Hash texts to 64 bits each."""
    # BLAKE2b, not Python's own hash, which differs between processes: a text read again after an
    # interruption must lose the same lines.
    digests = (
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for text in texts
    )
    return np.frombuffer(b"".join(digests), np.dtype("<u8")).astype(np.uint64)


class SeenHashes:
    """
    A compact set of 64-bit hashes.

    It consists of a few sorted arrays, each at least twice as long as the next. New hashes form a
    short array, and short arrays are merged (the log-structured merge of O'Neil et al. 1996). The
    arrays take 8 bytes per hash, and 20 while the longest are merged; a Python set takes about 100.

    Two different texts share a hash with a probability of 2^-64. So among n texts about n^2 / 2^65
    are falsely taken for duplicates: 3e-8 among a million, 3e-4 among a hundred million.
    """

    def __init__(self) -> None:
        self._blocks: list[Hashes] = []

    def add(self, hashes: Hashes) -> Bool[np.ndarray, " entries"]:
        """Add hashes and return which are new."""
        # This is fast for a few thousand hashes at a time: they are sorted before the lookup, so
        # that neighboring hashes are in the same memory pages.
        distinct, first = np.unique(hashes, return_index=True)
        known = np.zeros(len(distinct), bool)
        for block in self._blocks:
            places = np.searchsorted(block, distinct)
            known |= block[np.minimum(places, len(block) - 1)] == distinct
        new = np.zeros(len(hashes), bool)
        new[first[~known]] = True
        self._keep(distinct[~known])
        return new

    def _keep(self, fresh: Hashes) -> None:
        """Add a sorted array and merge arrays that are too short."""
        if not len(fresh):
            return
        while self._blocks and len(self._blocks[-1]) < 2 * len(fresh):
            fresh = np.concatenate([self._blocks.pop(), fresh])
            fresh.sort(kind="stable")  # merges runs that are already sorted
        self._blocks.append(fresh)


@dataclass(frozen=True)
class TextRules:  # numpydoc ignore=PR02
    """The rules that are applied to text."""

    source_language: str = ""
    """Code of the source language, for its scripts."""
    target_language: str = ""
    """Code of the target language."""
    min_script_share: float | None = None
    """Minimum share of a line's letters in its language's scripts; None for no check."""
    drop_duplicates: bool = False
    """Whether only the first of equal pairs is kept."""
    excluded: frozenset[str] = frozenset()
    """Lines that must not occur in the training text, normalized by `normalize_line`."""
    both_ways: bool = False
    """Whether the pairs are in both directions, so that a source may be in the target language."""


class TextFilter:
    """
    A filter that applies the rules to the pairs of one text, in order.

    A pair is a duplicate if both sides, without outer white space, equal those of an earlier pair.
    Only pairs that no other rule for text drops are remembered. `SeenHashes` documents the
    probability of collisions.
    """

    def __init__(self, rules: TextRules) -> None:
        self.notes: list[str] = []
        self._rules = rules
        self._seen = SeenHashes()
        self._excluded = HeldOutLines(rules.excluded)
        self._scripts: list[tuple[_Scripts, _Scripts]] = []
        if rules.min_script_share is not None:
            source = self._scripts_of(rules.source_language)
            target = self._scripts_of(rules.target_language)
            self._scripts = [(source, target), *([(target, source)] if rules.both_ways else [])]

    def reasons(self, sources: Sequence[str], targets: Sequence[str]) -> list[str | None]:
        """
        Judge the next pairs of the text.

        Returns for each pair the first rule that it breaks; None if it is kept.

        The result does not depend on how the text is divided into calls.
        """
        untagged = [split_tag(source)[1] for source in sources]
        reasons = list(map(self._reason, untagged, targets, self._overlaps(untagged, targets)))
        if self._rules.drop_duplicates:
            left = [place for place, reason in enumerate(reasons) if reason is None]
            pairs = ((sources[place].strip(), targets[place].strip()) for place in left)
            texts = (f"{len(source)} {source}{target}" for source, target in pairs)
            for place, is_new in zip(left, self._seen.add(hash_texts(texts)), strict=True):
                if not is_new:
                    reasons[place] = "duplicate"
        return reasons

    def _overlaps(self, sources: Sequence[str], targets: Sequence[str]) -> list[str | None]:
        """Find the pairs with a side that repeats a line of the excluded text."""
        overlaps: list[str | None] = [None] * len(sources)
        for side in (sources, targets):
            for place, match in self._excluded.find(side).items():
                is_exact = match.exact is not None or overlaps[place] == "overlap"
                overlaps[place] = "overlap" if is_exact else "near"
        return overlaps

    def _reason(self, source: str, target: str, overlap: str | None) -> str | None:
        """Return the first rule, except “duplicate”, that a pair breaks."""
        pair = source, target
        if any(not line or line.isspace() for line in pair):
            return "empty"
        if overlap:
            return overlap
        if self._scripts and not any(self._is_in(pair, scripts) for scripts in self._scripts):
            return "script"
        return None

    def _is_in(self, pair: tuple[str, str], scripts: tuple[_Scripts, _Scripts]) -> bool:
        """Tell whether enough letters of both sides are in the scripts of their languages."""
        least = self._rules.min_script_share
        return least is None or all(
            known is None or share_in(line, known) >= least
            for line, known in zip(pair, scripts, strict=True)
        )

    def _scripts_of(self, language: str) -> _Scripts:
        """Look up the scripts of a language; add a note if they are unknown."""
        scripts = scripts_of(language)
        if scripts is None:
            reason = (
                f"lines in “{language}”, because the script of this language is unknown; add the "
                "script to the language code, as in “xx-Latn”"
                if language
                else "lines without a language; set data.source_language and data.target_language"
            )
            self.notes.append(f"data.min_script_share was not applied to {reason}.")
        return scripts


def kept_pairs(pairs: Iterator[tuple[str, str]], rules: TextRules) -> bytearray:
    """Apply the rules for text to all pairs; return 1 for each pair that is kept, else 0."""
    judge, flags = TextFilter(rules), bytearray()
    while chunk := list(islice(pairs, _JUDGED_PAIRS)):
        reasons = judge.reasons([source for source, _ in chunk], [target for _, target in chunk])
        flags += bytes(reason is None for reason in reasons)
    return flags


def read_excluded(
    files: Sequence[TextSource | Path], read: Callable[[str], str] = str
) -> frozenset[str]:
    """
    Read the lines that must not occur in training, without their language tags.

    `read`: what is done to a line of the training text before the rules judge it.
    """
    # Lines are stored as text, not as hashes, so that no other line is dropped by mistake; test
    # sets are small enough.
    lines = (split_tag(read(line))[1] for path in files for line in read_lines(path))
    return frozenset(filter(None, map(normalize_line, lines)))
