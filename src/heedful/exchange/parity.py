"""
Parity checks, which compare two models on the same sentences.

Both sides use our ids. They tokenize the same text, compute log-probabilities of the same
translations, and translate, each with its own search. `Parity.check` compares log-probabilities.
Even if these agree, translations may differ, because two equally probable words may be ranked in
either order; `Parity.check_outputs` requires most translations to be equal.

Some models magnify rounding errors thousands of times, so two programs with the same weights differ
in single precision. Large differences are computed again in double precision if both sides support
it.
"""

import random
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from operator import eq
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from heedful.errors import ParityFailed
from heedful.tokenization.tokenizer import END, UNKNOWN, Tokenizer

Ids = Sequence[int]
BOUND = 1e-4
"""Tolerance for log-probabilities of engines that sum in different orders."""
# Maximum difference in double precision. If it is not exceeded, results in single precision may
# differ by `_MAGNIFIED` times the tolerance.
_PRECISE = 1e-6
# Above this difference, the sides also compute in double precision; smaller differences are
# rounding errors.
_ALIKE = 2e-5
_MAGNIFIED = 100
# Minimum share of equal translations.
_EQUAL = 0.95
# Maximum number of tokens of a translation along which log-probabilities are compared: each token
# needs a distribution over the whole vocabulary.
_MOST_TOKENS = 512


@runtime_checkable
class ReferenceModel(Protocol):
    """A model to compare; its inputs and outputs are our ids, without special symbols."""

    name: str
    """Name of the engine, such as ``transformers 5.23.0``."""

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Tokenize source sentences; the comparison fails if the sides' ids differ."""
        ...

    def log_probabilities(self, source: Ids, target: Ids) -> np.ndarray:
        """
        Compute log-probabilities of all symbols at each position of a translation and after it.

        Symbols that this side lacks get minus infinity. Engines that do not return distributions
        give only the log-probability of the symbol at each position.
        """
        ...

    def outputs(self, sentences: Sequence[str]) -> list[list[int]]:
        """Translate."""
        ...


@runtime_checkable
class DoublePrecisionReference(ReferenceModel, Protocol):
    """A side that can also compute log-probabilities in double precision."""

    def in_double(self) -> ReferenceModel:
        """Create a copy of this side that computes in double precision."""
        ...


@dataclass(frozen=True)
class Parity:
    """The result of a parity check; the times only show whether one side is very slow."""

    reference: str
    """Name of the other side."""
    sentences: int
    """Number of sentences that were compared."""
    bound: float
    difference: float
    """Largest difference between two log-probabilities."""
    same_tokens: int
    """Number of sentences that both sides tokenize identically."""
    same_outputs: int
    """Number of sentences that both sides translate identically."""
    seconds: float
    """Seconds that heedful needed to translate the sentences."""
    reference_seconds: float
    """Seconds that the other side needed to translate the sentences."""
    precise: float | None = None
    """Largest difference in double precision; None if it was not computed."""
    left_out: int = 0
    """Number of sentences left out of the comparison because translating one took too long."""

    def check(self) -> None:
        """Raise `ParityFailed` if the models differ."""
        # A difference above the tolerance is a rounding error if it nearly vanishes in double
        # precision; even then it is limited to a multiple of the tolerance.
        rounded = self.precise is not None and self.precise <= _PRECISE
        alike = self.difference <= self.bound * (_MAGNIFIED if rounded else 1)
        if alike and self.same_tokens == self.sentences:
            return
        raise ParityFailed(
            "both models must have equal subwords for all sentences and log-probabilities that "
            f"differ by at most {self.bound:g}, but they do not: {self}. Nothing was written."
        )

    def check_outputs(self, folder: Path | None) -> None:
        """
        Raise `ParityFailed` if fewer than 95% of translations are equal.

        `folder`: the imported or exported folder, which is kept; None before an upload.
        """
        if self.same_outputs >= _EQUAL * self.sentences:
            return
        state = "Nothing is uploaded. The" if folder is None else f"{folder} is complete: its"
        advice = (
            "Accept the differences"
            if folder is None
            else "Compare with --sentences and your own text, or accept the folder"
        )
        raise ParityFailed(
            f"both models must give the same translation of at least {_EQUAL:.0%} of the "
            f"sentences, but do so for {self.same_outputs} of {self.sentences}. {state} "
            "log-probabilities agree, but rounding or another search rule gives translations that "
            f"differ from the original's. {advice} with --accept-differences."
        )

    def __str__(self) -> str:
        """Format as one line."""
        precise = "" if self.precise is None else f", by {self.precise:.2g} in double precision"
        return (
            f"compared with {self.reference} on {self.sentences} sentences: log-probabilities "
            f"differ by at most {self.difference:.2g} (bound {self.bound:g}){precise}, "
            f"{self.same_tokens} of {self.sentences} sentences with equal subwords, "
            f"{self.same_outputs} of {self.sentences} translations equal; heedful took "
            f"{self.seconds:.2f} s, and the reference {self.reference_seconds:.2f} s"
            + (
                f"; {self.left_out} more sentences were skipped because they would take too long"
                if self.left_out
                else ""
            )
        )


def compare(
    ours: ReferenceModel,
    theirs: ReferenceModel,
    sentences: Sequence[str],
    bound: float,
    patience: float | None = None,
) -> Parity:
    """Compare the tokens, log-probabilities and translations of two sides."""
    # Log-probabilities are compared along the other side's translations, which are probable, and
    # along translations of the next sentence, which are improbable.
    taken, left_out = [0.0, 0.0], 0
    parts = [sentences] if patience is None else [sentences[-1:], sentences[:-1]]
    written_here: list[list[int]] = []
    wanted: list[list[int]] = []
    compared: list[str] = []
    for part in parts:
        if compared and patience is not None and sum(taken) * len(part) > patience:
            left_out = len(part)
            break
        compared += part
        for number, (side, written) in enumerate(((ours, written_here), (theirs, wanted))):
            began = time.perf_counter()
            written += side.outputs(part)
            taken[number] += time.perf_counter() - began
    sources, own_sources = theirs.encode(compared), ours.encode(compared)
    rotated = [*wanted[1:], *wanted[:1]]  # improbable: translations of other sentences
    pairs = [*zip(sources, wanted, strict=True), *zip(sources, rotated, strict=True)]
    difference, precise = _largest(ours, theirs, pairs), None
    if (
        difference > min(bound, _ALIKE)
        and isinstance(ours, DoublePrecisionReference)
        and isinstance(theirs, DoublePrecisionReference)
    ):
        precise = _largest(ours.in_double(), theirs.in_double(), pairs)
    return Parity(
        theirs.name,
        len(compared),
        bound,
        difference,
        sum(map(eq, own_sources, sources)),
        sum(map(eq, written_here, wanted)),
        taken[0],
        taken[1],
        precise,
        left_out,
    )


def sample_sentences(tokenizer: Tokenizer, count: int = 12, seed: int = 1) -> list[str]:
    """Generate texts of 1 to 24 random subwords, each after a language tag if there are tags."""
    # The texts are meaningless in every language, so they suit every model.
    drawn = random.Random(seed)
    tags = tokenizer.tags
    ordinary = list(range(END + 1, tokenizer.source_size))
    spelled = dict(zip(ordinary, tokenizer.pieces_source(ordinary), strict=True))
    # A symbol that text cannot produce here may be a token for the other side.
    marks = [n for n in ordinary if re.fullmatch(r"<[^<>]+>", spelled[n])]
    again = tokenizer.models[0].encode([spelled[n] for n in marks])
    unnamed = {n for n, row in zip(marks, again, strict=True) if row != [n]}
    ordinary = [n for n in ordinary if spelled[n] not in tags and n not in unnamed] or [UNKNOWN]
    sentences = []
    for number in range(count):
        length = 1 + (23 * number) // max(1, count - 1)
        text = tokenizer.decode_source(drawn.choices(ordinary, k=length)).strip() or "a"
        sentences.append(f"{tags[number % len(tags)]} {text}" if tags else text)
    return sentences


def _largest(
    ours: ReferenceModel, theirs: ReferenceModel, pairs: Sequence[tuple[Ids, Ids]]
) -> float:
    """Compute the largest difference; NaN counts as infinite."""
    if not pairs:
        return float("inf")
    return float(np.max([_difference(ours, theirs, *pair) for pair in pairs]))


def _difference(ours: ReferenceModel, theirs: ReferenceModel, source: Ids, target: Ids) -> float:
    """Compute the largest difference along one translation."""
    target = target[:_MOST_TOKENS]
    there = theirs.log_probabilities(source, target)
    here = ours.log_probabilities(source, target)
    if there.shape[1] == 1:
        here = here[np.arange(len(here)), [*target, END]][:, None]
    here = here[:, : there.shape[1]]
    known = ~np.isneginf(there)
    return float(np.abs(here - there, where=known, out=np.zeros_like(there)).max())
