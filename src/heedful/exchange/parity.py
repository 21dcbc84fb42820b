"""
Whether two models are the same one: both are asked about the same sentences.

Both sides speak our ids. They cut the same text, give log-probabilities for the same translations,
and search, each by its own rule. Differences of log-probabilities decide; what the searches find is
told beside them, since two equally probable words may come in either order.

Some models magnify rounding thousands of times, so that in single precision the same weights give
different numbers in any two programs. Where differences are too large, sides that can are asked
again in double precision, where there are digits enough to lose.
"""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from heedful.errors import ParityFailed
from heedful.tokenization.tokenizer import END, UNKNOWN, Tokenizer

Ids = Sequence[int]
# What double precision may differ by, and how many bounds single precision then may.
_PRECISE = 1e-6
_MAGNIFIED = 100
# Share of translations that must be equal for two searches to count as the same.
_EQUAL = 0.95
# Tokens of a translation along which log-probabilities are compared: each takes a whole vocabulary.
_MOST_TOKENS = 512


@runtime_checkable
class ReferenceModel(Protocol):
    """
    A model that answers in our ids, whatever it computes with.

    Attributes
    ----------
    name : str
        What computes, for people, such as ``transformers 5.23.0``.

    Notes
    -----
    Ids come and go without special symbols: no end, no start.
    """

    name: str

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """
        Cut source sentences.

        Parameters
        ----------
        sentences : sequence of str
            Text, with its language tag if there are tags.

        Returns
        -------
        list of list of int
            Ids.

        Notes
        -----
        The same ids on both sides, or the comparison fails.
        """
        ...

    def log_probabilities(self, source: Ids, target: Ids) -> np.ndarray:
        """
        Compute what the model thinks of a translation.

        Parameters
        ----------
        source : sequence of int
            A source sentence.
        target : sequence of int
            A translation of it.

        Returns
        -------
        ndarray of float, shape (target + 1, vocabulary) or (target + 1, 1)
            For each place of the target, and for the end behind it, the log-probability of every
            symbol, minus infinity for symbols that this side does not have; or only that of the
            symbol that stands there.

        Notes
        -----
        The second shape is for engines that tell no more.
        """
        ...

    def outputs(self, sentences: Sequence[str]) -> list[list[int]]:
        """
        Translate.

        Parameters
        ----------
        sentences : sequence of str
            Text, with its language tag if there are tags.

        Returns
        -------
        list of list of int
            Their translations, by this side's own rule of search.

        Notes
        -----
        Without the end symbol.
        """
        ...


@runtime_checkable
class DoublePrecisionReference(ReferenceModel, Protocol):
    """
    A side that can also count in double precision.

    Notes
    -----
    Only for log-probabilities; what it is asked to translate is translated as users will have it.
    """

    def in_double(self) -> ReferenceModel:
        """
        Make the same side once more, computing in double precision.

        Returns
        -------
        ReferenceModel
            The same weights and ids.

        Notes
        -----
        Slower, and takes twice the memory.
        """
        ...


@dataclass(frozen=True)
class Parity:
    """
    Report how equal two models are.

    Attributes
    ----------
    reference : str
        What was compared with.
    sentences : int
        How many.
    bound : float
        Largest difference that counts as equal.
    difference : float
        Largest difference between two log-probabilities.
    same_tokens : int
        Sentences that both sides cut alike.
    same_outputs : int
        Sentences that both sides translate alike.
    seconds : float
        What heedful took to translate them.
    reference_seconds : float
        What the other side took.
    precise : float or None, default None
        The same difference in double precision; None where single precision was within the bound.
    left_out : int, default 0
        Sentences that were not compared, since one alone took so long.

    Notes
    -----
    Seconds of a few sentences say whether something is very slow, not how fast it is.
    """

    reference: str
    sentences: int
    bound: float
    difference: float
    same_tokens: int
    same_outputs: int
    seconds: float
    reference_seconds: float
    precise: float | None = None
    left_out: int = 0

    def check(self) -> None:
        """
        Fail if the models are not the same.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        Raises `ParityFailed`. A difference above the bound is rounding if double precision has
        next to none; even then it may only be so many times the bound.
        """
        rounded = self.precise is not None and self.precise <= _PRECISE
        alike = self.difference <= self.bound * (_MAGNIFIED if rounded else 1)
        if alike and self.same_tokens == self.sentences:
            return
        raise ParityFailed(
            f"the model must be the same on both sides, log-probabilities within {self.bound:g} "
            f"and all sentences cut alike, but is not: {self}. Nothing was written."
        )

    def check_outputs(self, folder: Path) -> None:
        """Fail if fewer than 95 of 100 translations are equal; the folder stays."""
        if self.same_outputs >= _EQUAL * self.sentences:
            return
        raise ParityFailed(
            f"at least {_EQUAL:.0%} of the translations must be equal on both sides, but "
            f"{self.same_outputs} of {self.sentences} are. {folder} is complete and was kept: its "
            "log-probabilities agree, but rounding or another rule of search gives other "
            "translations than the original's. Compare with --sentences and text of your own, or "
            "take it as it is with --accept-differences."
        )

    def __str__(self) -> str:
        """Write one line for people."""
        precise = "" if self.precise is None else f", by {self.precise:.2g} in double precision"
        return (
            f"compared with {self.reference} on {self.sentences} sentences: log-probabilities "
            f"differ by at most {self.difference:.2g} (bound {self.bound:g}){precise}, "
            f"{self.same_tokens} cut alike, {self.same_outputs} of {self.sentences} translations "
            f"equal, in {self.seconds:.2f} s and {self.reference_seconds:.2f} s there"
            + (f"; {self.left_out} more would have taken too long" if self.left_out else "")
        )


def compare(
    ours: ReferenceModel,
    theirs: ReferenceModel,
    sentences: Sequence[str],
    bound: float,
    patience: float | None = None,
) -> Parity:
    """
    Hold two sides together.

    Parameters
    ----------
    ours : ReferenceModel
        Our model; it tells whole distributions.
    theirs : ReferenceModel
        The other one.
    sentences : sequence of str
        What to compare on.
    bound : float
        Largest difference that counts as equal.
    patience : float, optional
        Seconds that translating may take: where by the last sentence, which is translated first,
        all would take longer, it is the only one.

    Returns
    -------
    Parity
        The report; it has not been checked.

    Notes
    -----
    Log-probabilities are taken along the other side's translations, which are probable, and along
    those of the next sentence, which are not.
    """
    taken, left_out = [0.0, 0.0], 0
    parts = [sentences] if patience is None else [sentences[-1:], sentences[:-1]]
    found: list[list[int]] = []
    wanted: list[list[int]] = []
    compared: list[str] = []
    for part in parts:
        if compared and patience is not None and sum(taken) * len(part) > patience:
            left_out = len(part)
            break
        compared += part
        for number, (side, written) in enumerate(((ours, found), (theirs, wanted))):
            began = time.perf_counter()
            written += side.outputs(part)
            taken[number] += time.perf_counter() - began
    sources = theirs.encode(compared)
    own_sources = ours.encode(compared)
    same = [mine == other for mine, other in zip(own_sources, sources, strict=True)]
    rotated = [*wanted[1:], *wanted[:1]]  # translations of other sentences: improbable ones
    pairs = [*zip(sources, wanted, strict=True), *zip(sources, rotated, strict=True)]
    difference, precise = _largest(ours, theirs, pairs), None
    if (
        difference > bound
        and isinstance(ours, DoublePrecisionReference)
        and isinstance(theirs, DoublePrecisionReference)
    ):
        precise = _largest(ours.in_double(), theirs.in_double(), pairs)
    return Parity(
        theirs.name,
        len(compared),
        bound,
        difference,
        sum(same),
        sum(list(mine) == list(other) for mine, other in zip(found, wanted, strict=True)),
        taken[0],
        taken[1],
        precise,
        left_out,
    )


def sample_sentences(tokenizer: Tokenizer, count: int = 12, seed: int = 1) -> list[str]:
    """
    Make sentences that a tokenizer can cut.

    Parameters
    ----------
    tokenizer : Tokenizer
        Whose source side.
    count : int, default 12
        How many.
    seed : int, default 1
        Of the choice.

    Returns
    -------
    list of str
        Random subwords as text, of lengths from 1 to 24, after the language tags in turn.

    Notes
    -----
    They make no sense, in any language, which is what makes them fit every model.
    """
    drawn = random.Random(seed)
    tags = tokenizer.tags
    ordinary = list(range(END + 1, tokenizer.source_size))
    spelled = dict(zip(ordinary, tokenizer.pieces_source(ordinary), strict=True))
    ordinary = [n for n in ordinary if spelled[n] not in tags] or [UNKNOWN]
    sentences = []
    for number in range(count):
        length = 1 + (23 * number) // max(1, count - 1)
        text = tokenizer.decode_source(drawn.choices(ordinary, k=length)).strip() or "a"
        sentences.append(f"{tags[number % len(tags)]} {text}" if tags else text)
    return sentences


def _largest(
    ours: ReferenceModel, theirs: ReferenceModel, pairs: Sequence[tuple[Ids, Ids]]
) -> float:
    """Compute the largest difference; a number that is none must not pass as small."""
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
