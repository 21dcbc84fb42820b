"""
Settings of a search: the caller's options, completed from a recipe.

The fields of `SearchOptions` are also keywords of `Translator.translate`. Most are also flags of
the commands and options of a request. The module does not import torch, so the command line can
refuse conflicting options before it loads the model.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from heedful.arguments import check_fields, check_keywords, flag
from heedful.errors import ArgumentError, SettingError
from heedful.search.length import LengthLimit, LengthPenalty
from heedful.search.stopping import StoppingPolicy
from heedful.settings.registries import unknown_rules
from heedful.settings.search import (
    BEAM,
    COVERAGE_PENALTY,
    LENGTH_PENALTY,
    MAX_LENGTH,
    MIN_LENGTH,
    NO_REPEAT_NGRAM,
    SearchSetting,
)

if TYPE_CHECKING:
    from heedful.config.search import SearchConfig

_LARGEST_SEED = 2**63 - 1
# Lowest temperature: a log-probability divided by it stays finite in fp64.
_COLDEST = 1e-300


@dataclass(frozen=True)
class Sampling:
    """
    Settings of random sampling instead of search.

    Notes
    -----
    `top_p` is from Holtzman et al. 2020, `top_k` from Fan et al. 2018. With the default
    temperature, `top_k` and `top_p`, translations are drawn from the model's own distribution.
    Raises `SettingError` for values out of range.
    """

    temperature: float = 1.0
    """Divides the log-probabilities; values below 1 sharpen the distribution."""
    top_k: int = 0
    """
    Number of most probable tokens that may be drawn; ties with the last are included; 0 for all.
    """
    top_p: float = 1.0
    """Draw from the smallest set of most probable tokens with at least this total probability."""
    seed: int = 0
    """Seed of the draws."""

    def __post_init__(self) -> None:
        """Check types and ranges."""
        check_fields(self)
        if not _COLDEST <= self.temperature < math.inf:
            raise SettingError(
                f"the temperature of sampling must be finite and at least {_COLDEST}, but is "
                f"{self.temperature}; for the most probable token at each step, use a beam of 1 "
                "instead of sampling."
            )
        if self.top_k < 0:
            raise SettingError(
                f"top-k must be at least 0, but is {self.top_k}; 0 allows all tokens."
            )
        if not 0.0 < self.top_p <= 1.0:
            raise SettingError(
                f"top-p must be above 0 and at most 1, but is {self.top_p}; 1 allows all tokens."
            )
        if not 0 <= self.seed <= _LARGEST_SEED:
            raise SettingError(
                f"the seed of sampling must be from 0 to {_LARGEST_SEED:,}, but is {self.seed:,}."
            )


def _shared_setting(setting: SearchSetting, default: Any = None) -> Any:
    """Declare a flag with the help text and the range of a shared setting."""
    return flag(setting.text, default, least=setting.least, most=setting.most)


@dataclass(frozen=True)
class SearchOptions:
    """
    Settings of a search, the same for all lines, under the names of the command-line options.

    Notes
    -----
    A field that is None is filled from the table ``[search]`` of a recipe. Without a recipe, None
    stands for the paper's settings (section 6.1): beam 4, alpha 0.6, at most 50 tokens more than
    the input, early termination. Raises `SettingError` for values out of range and for conflicting
    settings.
    """

    beam: int | None = _shared_setting(BEAM)
    """Open hypotheses per sentence, 1 for greedy search."""
    length_penalty: str | None = _shared_setting(LENGTH_PENALTY)
    """``gnmt:0.6``, ``power:1.0`` or ``none``."""
    coverage_penalty: float | None = flag(COVERAGE_PENALTY.text)
    """Beta of GNMT's coverage penalty, 0 for none."""
    max_length: int | str | None = _shared_setting(MAX_LENGTH)
    """``input+50`` or a number of tokens, without the end symbol."""
    min_length: int | None = _shared_setting(MIN_LENGTH)
    """Minimum number of tokens of a translation."""
    n_best: int = flag("Number of translations of each line.", 1, least=1, most=BEAM.most)
    """Translations of each line; the beam is at least as wide."""
    sample: Sampling | None = None
    """Draw `n_best` translations instead of searching for the best."""
    stop: str | None = flag(
        "Stopping rule of the search: when-none-can-win, when-beam-finished, as-ctranslate2, "
        "as-transformers, as-joey or as-opennmt."
    )
    """Name of the stopping rule (`heedful.search.stopping.stopping_rules`)."""
    rules: str | None = flag(
        "Names of plugins' search rules, separated by spaces; by default the run's; '' for none."
    )
    """Names of rules in `heedful.plugins.RULES`, separated by spaces."""
    no_repeat_ngram: int | None = _shared_setting(NO_REPEAT_NGRAM)
    """Forbid repeated n-grams of this many tokens; 0 allows all."""
    diverse_groups: int = flag(
        "Number of groups of a diverse beam search; 1 is off.", 1, least=1, most=BEAM.most
    )
    """Number of groups of diverse beam search."""
    diversity_strength: float | None = flag(
        "With --diverse-groups: penalty for subwords that earlier groups chose; 0.5 by default."
    )
    """Cost of a token, in nats, per hypothesis of earlier groups that chose it; 0.5 if None."""
    eos_candidates: Literal["beam", "twice"] | None = None
    """Number of best candidates that may end: `beam` or, with ``twice``, 2 x `beam`."""
    length_limit_policy: Literal["cut", "end", "force", "keep"] | None = None
    """What happens to a hypothesis at the length limit (`StoppingPolicy`)."""
    renormalise: bool | None = None
    """Whether the probabilities of allowed tokens are normalized to a sum of one."""

    def __post_init__(self) -> None:
        """Check types, ranges and combinations."""
        check_fields(self)
        if self.max_length is not None:  # 200 and "200" are equivalent
            object.__setattr__(self, "max_length", str(self.max_length))
        _ = self.penalty, self.limit, self.stopping  # raise errors for invalid texts
        for option in fields(self):
            name, value = option.name.replace("_", "-"), getattr(self, option.name)
            least, most = option.metadata.get("least"), option.metadata.get("most")
            if None not in (value, least) and value < least:
                raise SettingError(f"{name} must be at least {least}, but is {value}.")
            if None not in (value, most) and value > most:
                raise SettingError(f"{name} must be at most {most:,}, but is {value:,}.")
        if unknown := unknown_rules(self.rules or ""):
            raise SettingError(
                f"rules must be names that a plugin has registered, but {unknown[0]!r} is not "
                "registered; name the plugin's file with --plugin."
            )
        cost = self.diversity_strength
        if cost is not None and not (math.isfinite(cost) and cost >= 0.0):
            raise SettingError(
                f"diversity-strength must be a finite number of at least 0, but is {cost}."
            )
        if cost is not None and self.diverse_groups == 1:
            raise SettingError(
                "diversity-strength makes the groups of a beam differ, but there is only one "
                "group; set diverse-groups to 2 or more, or leave diversity-strength out."
            )
        beta = self.coverage_penalty
        most = COVERAGE_PENALTY.most or 0
        if beta is not None and not 0.0 <= beta <= most:
            raise SettingError(
                f"coverage-penalty must be a number from 0 to {most}, but is {beta}; GNMT's is 0.2."
            )
        if beta and (self.sample is not None or self.size == 1):
            method = "a beam of 1 (greedy search)" if self.sample is None else "sampling"
            raise SettingError(
                f"coverage-penalty compares the finished hypotheses of a beam, but {method} "
                "compares none; leave coverage-penalty out, or search with a beam of 2 or more."
            )
        if self.sample is not None and (self.beam is not None or self.diverse_groups > 1):
            excess = "a beam" if self.beam is not None else "diverse-groups"
            raise SettingError(
                f"sampling draws each translation without a beam, but got {excess} as well; leave "
                "out one of the two (n-best is the number of samples)."
            )

    @property
    def size(self) -> int:
        """Open hypotheses per sentence, at least `n_best` and a multiple of `diverse_groups`."""
        if self.sample is not None:
            return self.n_best
        wanted = max(4 if self.beam is None else self.beam, self.n_best)
        return math.ceil(wanted / self.diverse_groups) * self.diverse_groups

    @property
    def width(self) -> int:
        """Number of open hypotheses of each group."""
        return self.size // self.diverse_groups

    @property
    def eos_ranks(self) -> int:
        """Number of best candidates of a group among which the end symbol finishes a hypothesis."""
        return 2 * self.width if self.eos_candidates == "twice" else self.width

    @cached_property
    def penalty(self) -> LengthPenalty:
        """The length penalty."""
        text = self.length_penalty
        return LengthPenalty.parse("gnmt:0.6" if text is None else text)

    @cached_property
    def limit(self) -> LengthLimit:
        """Maximum number of tokens of a translation."""
        return LengthLimit.parse("input+50" if self.max_length is None else str(self.max_length))

    @cached_property
    def stopping(self) -> StoppingPolicy:
        """When a sentence is done, and what happens to hypotheses at their limit."""
        stop = StoppingPolicy.stop if self.stop is None else self.stop
        policy = StoppingPolicy(stop, self.length_limit_policy or "cut")
        return policy.resolved_for(self.penalty)

    @property
    def group_cost(self) -> float:
        """Cost of a token that an earlier group chose; Vijayakumar et al. suggest 0.2 to 0.8."""
        return 0.5 if self.diversity_strength is None else self.diversity_strength

    @classmethod
    def from_keywords(
        cls, owner: str, options: "SearchOptions | None", keywords: Mapping[str, Any]
    ) -> "SearchOptions":
        """
        Build options from the keywords of a function, or return the options that were passed.

        Parameters
        ----------
        owner : str
            Name of the function, for messages.
        options : SearchOptions or None
            All options. If they are given, no keyword may differ from its default.
        keywords : mapping of str to object
            Fields by their names.

        Returns
        -------
        SearchOptions
            The options. Wrong types raise `ArgumentError`, and unknown names raise `TypeError`.
        """
        check_keywords(owner, keywords, cls)
        from_keywords = cls(**keywords) if keywords else PAPER_SEARCH
        if options is not None and from_keywords != PAPER_SEARCH:
            raise ArgumentError(
                "`options` must hold all options of the search, but keywords were given too; give "
                "one or the other."
            )
        return options or from_keywords

    def over(self, recipe: "SearchConfig") -> "SearchOptions":
        """
        Fill the fields that are None from the table ``[search]`` of a recipe.

        Parameters
        ----------
        recipe : SearchConfig
            The table.

        Returns
        -------
        SearchOptions
            The caller's options, completed from the recipe. The recipe's beam does not apply to
            sampling; the recipe's coverage penalty applies only to a search with a beam of 2 or
            more.
        """
        names = [option.name for option in fields(self) if getattr(self, option.name) is None]
        filling = {name: getattr(recipe, name) for name in names if hasattr(recipe, name)}
        beta = filling.get("coverage_penalty", 0.0)
        filling["coverage_penalty"] = self.coverage_penalty or 0.0
        if self.sample is not None:
            filling.pop("beam", None)
        filled = replace(self, **filling)
        compares = self.sample is None and filled.size > 1
        return replace(filled, coverage_penalty=beta) if beta and compares else filled

    def check_constraints(self) -> None:
        """
        Refuse options that cannot be combined with constraints.

        Raises `SettingError`. Constraints need a beam of hypotheses that contain different numbers
        of phrases.
        """
        excess = "diverse-groups" if self.diverse_groups > 1 else ""
        excess = "sampling" if self.sample is not None else excess
        if excess:
            raise SettingError(
                "force-phrases groups the hypotheses by the number of phrase tokens they "
                f"contain, but got {excess} as well; leave out one of the two."
            )


PAPER_SEARCH = SearchOptions()
"""The paper's settings (section 6.1)."""
PEERS_SEARCH = SearchOptions(4, "power:1", max_length="input+50", stop="as-ctranslate2")
"""The default search of other toolkits, for comparisons with them."""
