"""
What a user may ask of a search, checked before anything is loaded.

No torch here: the command line refuses what cannot go together at once, not after the model has
been read.
"""

import math
from dataclasses import dataclass

from heedful.arguments import check_fields
from heedful.errors import SettingError
from heedful.search.length import LengthLimit, LengthPenalty

_LARGEST_SEED = 2**63 - 1
_DIVERSITY = 0.5
# A step of a search holds this many times the vocabulary in memory, for each sentence.
_WIDEST = 10_000


@dataclass(frozen=True)
class Sampling:
    """
    Draw translations at random instead of searching for the best.

    Attributes
    ----------
    temperature : float, default 1.0
        Divides the log-probabilities first: below 1 the probable becomes more probable.
    top_k : int, default 0
        Then only so many most probable tokens may be drawn, and those just as probable as the
        last of them; 0 for all.
    top_p : float, default 1.0
        Then only the fewest most probable tokens that together have this probability, the token
        that reaches it included.
    seed : int, default 0
        Another seed gives other translations.

    Notes
    -----
    Holtzman et al. 2020 is the source of `top_p`, Fan et al. 2018 that of `top_k`. All three at
    their defaults draw from the model's own distribution. Raises `SettingError` for values out of
    range.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

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
    Say how translations are to be found, for all lines alike.

    Attributes
    ----------
    beam : int or None, default None
        Open hypotheses a sentence, 1 for greedy search; the recipe's when None.
    length_penalty : str or None, default None
        ``gnmt:0.6``, ``power:1.0`` or ``none``; the recipe's when None.
    max_length : str or None, default None
        ``input+50`` or a number of tokens; the recipe's when None.
    n_best : int, default 1
        Translations of each line.
    sample : Sampling or None, default None
        Draw `n_best` translations instead of searching.
    no_repeat_ngram : int, default 0
        No so many tokens in a row occur twice in a translation; 0 allows all.
    diverse_groups : int, default 1
        Groups of the beam that are kept different from each other.
    diversity_strength : float or None, default None
        What it costs a group to choose a token that an earlier group chose in the same step; a half
        when None.
    min_length : int or None, default None
        Fewest tokens of a translation; the recipe's when None.

    Notes
    -----
    Raises `SettingError` for values out of range and for what cannot go together.
    """

    beam: int | None = None
    length_penalty: str | None = None
    max_length: str | None = None
    n_best: int = 1
    sample: Sampling | None = None
    no_repeat_ngram: int = 0
    diverse_groups: int = 1
    diversity_strength: float | None = None
    min_length: int | None = None

    def __post_init__(self) -> None:
        """Check types, ranges and what goes together."""
        check_fields(self)
        LengthPenalty.parse(self.length_penalty or "none")
        LengthLimit.parse(self.max_length or "input+50")
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
                "diversity-strength sets the groups of a beam apart, but there is one group; ask "
                "for two or more groups, or leave diversity-strength out."
            )
        if self.sample is not None and (self.beam is not None or self.diverse_groups > 1):
            given = "a beam" if self.beam is not None else "diverse-groups"
            raise SettingError(
                f"sampling draws each translation by itself and has no beam, but {given} came with "
                "it; leave out one of the two (n-best says how many are drawn)."
            )

    def check_constraints(self) -> None:
        """
        Refuse options that cannot go with constraints.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        Raises `SettingError`. Phrases that must occur are found by a beam that keeps hypotheses
        with more and with fewer of them side by side.
        """
        other = "diverse-groups" if self.diverse_groups > 1 else ""
        other = "sampling" if self.sample is not None else other
        if other:
            raise SettingError(
                f"force-phrases needs a beam that is divided by what has been met, but {other} "
                "came with it; leave out one of the two."
            )

    def width(self, beam: int) -> int:
        """
        Compute how many hypotheses of a sentence are open at once.

        Parameters
        ----------
        beam : int
            Where the options name none: the recipe's.

        Returns
        -------
        int
            At least `n_best`, and a multiple of `diverse_groups`.

        Notes
        -----
        A group needs at least one; an odd beam is widened so that all groups are equally wide.
        """
        if self.sample is not None:
            return self.n_best
        wanted = max(beam if self.beam is None else self.beam, self.n_best)
        return math.ceil(wanted / self.diverse_groups) * self.diverse_groups

    @property
    def diversity_cost(self) -> float:
        """What a token costs that an earlier group chose in the same step."""
        return _DIVERSITY if self.diversity_strength is None else self.diversity_strength


@dataclass(frozen=True)
class LineConstraints:
    """
    Say what the translation of one line must be like.

    Attributes
    ----------
    prefix : tuple of int, default ()
        Its first tokens.
    phrases : tuple of tuple of int, default ()
        Phrases that must occur in it, as often as they are listed.
    avoided : tuple of tuple of int, default ()
        Phrases that must not occur in it.

    Notes
    -----
    Phrases are tokens: cut into other subwords, the same letters are another phrase.
    """

    prefix: tuple[int, ...] = ()
    phrases: tuple[tuple[int, ...], ...] = ()
    avoided: tuple[tuple[int, ...], ...] = ()
