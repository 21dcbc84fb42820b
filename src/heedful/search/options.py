"""
Search options, checked before anything is loaded.

No torch here: the command line refuses what cannot go together at once, not after the model has
been read.
"""

import math
from dataclasses import dataclass

from heedful.arguments import check_fields
from heedful.errors import SettingError
from heedful.search.length import LengthLimit, LengthPenalty
from heedful.search.stopping import StoppingPolicy

DIVERSITY = 0.5
"""Cost of a token that an earlier group chose; Vijayakumar et al. find 0.2 to 0.8 useful."""
MOST_COVERAGE = 10.0
"""Largest coverage penalty: scores stay numbers."""
_LARGEST_SEED = 2**63 - 1
# Largest beam: for each sentence a step keeps this many rows of the vocabulary's size in memory.
_WIDEST = 10_000


@dataclass(frozen=True)
class Sampling:
    """
    Settings of random sampling instead of search.

    Notes
    -----
    `top_p` is from Holtzman et al. 2020, `top_k` from Fan et al. 2018. With all three defaults,
    translations are drawn from the model's own distribution. Raises `SettingError` for values out
    of range.
    """

    temperature: float = 1.0
    """Divides the log-probabilities first: below 1 sharpens the distribution."""
    top_k: int = 0
    """
    Then only this many most probable tokens may be drawn, and those equal to the last of them; 0
    for all.
    """
    top_p: float = 1.0
    """Then only the smallest set of most probable tokens with this total probability."""
    seed: int = 0
    """Seed of the draws."""

    def __post_init__(self) -> None:
        """Check types and ranges."""
        check_fields(self)
        if not (math.isfinite(self.temperature) and self.temperature > 0.0):
            raise SettingError(
                f"the temperature of sampling must be a number above 0, but is {self.temperature}; "
                "for the most probable token at each step take a beam of 1."
            )
        if self.top_k < 0:
            raise SettingError(f"top-k must be at least 0, but is {self.top_k}; 0 is all tokens.")
        if not 0.0 < self.top_p <= 1.0:
            raise SettingError(
                f"top-p must be above 0 and at most 1, but is {self.top_p}; 1 is all tokens."
            )
        if not 0 <= self.seed <= _LARGEST_SEED:
            raise SettingError(
                f"the seed of sampling must be from 0 to {_LARGEST_SEED:,}, but is {self.seed:,}."
            )


@dataclass(frozen=True)
class SearchOptions:
    """
    What a caller asks of the search, for all lines alike, as written on the command line.

    It is made before a model is loaded; `SearchSettings.of` puts it over a recipe. Raises
    `SettingError` for values out of range and for what cannot go together.
    """

    beam: int | None = None
    """Open hypotheses per sentence, 1 for greedy search; the recipe's if None."""
    length_penalty: str | None = None
    """``gnmt:0.6``, ``power:1.0`` or ``none``; the recipe's when None."""
    max_length: int | str | None = None
    """``input+50`` or a number of tokens; the recipe's when None."""
    n_best: int = 1
    """Translations of each line."""
    sample: Sampling | None = None
    """Draw `n_best` translations instead of searching."""
    no_repeat_ngram: int = 0
    """Forbid repeated n-grams of this many tokens; 0 allows all."""
    diverse_groups: int = 1
    """Number of groups of diverse beam search."""
    diversity_strength: float | None = None
    """Cost of a token that an earlier group chose in the same step; 0.5 if None."""
    min_length: int | None = None
    """Minimum number of tokens of a translation; the recipe's if None."""
    stop: str | None = None
    """The stopping rule, a name of `stopping_rules()`; the recipe's if None."""
    coverage_penalty: float | None = None
    """Beta of GNMT's coverage penalty, 0 for none; the recipe's if None."""

    def __post_init__(self) -> None:
        """Check types, ranges and combinations."""
        check_fields(self)
        LengthPenalty.parse(self.length_penalty or "none")
        if (
            self.max_length is not None
        ):  # a number means that many tokens, here as on the command line
            object.__setattr__(self, "max_length", str(self.max_length))
        LengthLimit.parse(str(self.max_length or "input+50"))
        if self.stop:
            StoppingPolicy(self.stop)
        widths = {"beam": self.beam, "n-best": self.n_best, "diverse-groups": self.diverse_groups}
        least = {name: (value, 1) for name, value in widths.items()}
        least |= {"no-repeat-ngram": (self.no_repeat_ngram, 0), "min-length": (self.min_length, 0)}
        for name, (value, lowest) in least.items():
            if value is not None and value < lowest:
                raise SettingError(f"{name} must be at least {lowest}, but is {value}.")
            if name in widths and value is not None and value > _WIDEST:
                raise SettingError(f"{name} must be at most {_WIDEST:,}, but is {value:,}.")
        cost = self.diversity_strength
        if cost is not None and not (math.isfinite(cost) and cost >= 0.0):
            raise SettingError(f"diversity-strength must be a number of at least 0, but is {cost}.")
        if cost is not None and self.diverse_groups == 1:
            raise SettingError(
                "diversity-strength makes the groups of a beam differ, but there is one group; ask "
                "for two or more groups, or leave diversity-strength out."
            )
        beta = self.coverage_penalty
        if beta is not None and not 0.0 <= beta <= MOST_COVERAGE:
            raise SettingError(
                f"coverage-penalty must be a number from 0 to {MOST_COVERAGE:g}, but is {beta}; "
                "GNMT's is 0.2."
            )
        if self.sample is not None or (self.beam == 1 and self.n_best == 1):
            self.check_coverage()
        if self.sample is not None and (self.beam is not None or self.diverse_groups > 1):
            given = "a beam" if self.beam is not None else "diverse-groups"
            raise SettingError(
                f"sampling draws each translation by itself and has no beam, but {given} came with "
                "it; leave out one of the two (n-best says how many are drawn)."
            )

    def check_coverage(self) -> None:
        """Refuse a coverage penalty where no hypotheses are compared; raises `SettingError`."""
        if self.coverage_penalty:
            other = "a beam of 1 (greedy search)" if self.sample is None else "sampling"
            raise SettingError(
                "coverage-penalty chooses among the finished hypotheses of a beam, but "
                f"{other} came with it, which compares none; leave coverage-penalty out, or "
                "search with a beam of 2 or more."
            )

    def check_constraints(self) -> None:
        """
        Refuse options that cannot be combined with constraints.

        Raises `SettingError`. Constraints need a beam that keeps hypotheses with more and with
        fewer phrases side by side.
        """
        other = "diverse-groups" if self.diverse_groups > 1 else ""
        other = "sampling" if self.sample is not None else other
        if other:
            raise SettingError(
                f"force-phrases needs a beam that is divided by what has been met, but {other} "
                "came with it; leave out one of the two."
            )

    def width(self, beam: int) -> int:
        """Compute the number of open hypotheses per sentence."""
        if self.sample is not None:
            return self.n_best
        # The n-best list is read off the beam, so it must fit in.
        wanted = max(beam if self.beam is None else self.beam, self.n_best)
        return math.ceil(wanted / self.diverse_groups) * self.diverse_groups


@dataclass(frozen=True)
class LineConstraints:
    """
    Constraints on the translation of one line.

    Phrases are token sequences: the same letters in other subwords are another phrase.
    """

    prefix: tuple[int, ...] = ()
    """Its first tokens."""
    phrases: tuple[tuple[int, ...], ...] = ()
    """Phrases that must occur in it, as often as they are listed."""
    avoided: tuple[tuple[int, ...], ...] = ()
    """Phrases that must not occur in it."""
