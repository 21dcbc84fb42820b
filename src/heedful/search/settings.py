"""Settings of a search: what a caller asks for, over what a recipe says."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heedful.search.length import LengthLimit, LengthPenalty
from heedful.search.options import DIVERSITY, Sampling, SearchOptions
from heedful.search.stopping import StoppingPolicy

if TYPE_CHECKING:
    from heedful.config.search import SearchConfig


_PENALTY, _LIMIT = LengthPenalty("gnmt", 0.6), LengthLimit(50, relative=True)
_STOPPING = StoppingPolicy()


@dataclass(frozen=True)
class SearchSettings:
    """
    All that a search must know besides model, sentences and rules, resolved to typed values.

    Notes
    -----
    The defaults are the paper's (section 6.1): beam 4, alpha 0.6, at most 50 tokens more than the
    input, early termination. Every search takes the whole and reads what it needs.
    """

    beam: int = 4
    """Open hypotheses per sentence."""
    n_best: int = 1
    """Hypotheses to return per sentence, at most `beam`; for sampling the number of draws."""
    penalty: LengthPenalty = _PENALTY
    """Orders complete hypotheses of different lengths."""
    limit: LengthLimit = _LIMIT
    """Maximum number of tokens of a translation."""
    stopping: StoppingPolicy = _STOPPING
    """When a sentence is done, and what happens to hypotheses at their limit."""
    eos_candidates: int = 0
    """
    EOS finishes a hypothesis only if it ranks within this many best candidates of a step. 0 becomes
    the width of the beam, or of each of its groups.
    """
    min_length: int = 0
    """Minimum number of tokens of a translation."""
    renormalise: bool = False
    """Whether the probabilities of allowed tokens are renormalised to one."""
    no_repeat_ngram: int = 0
    """Forbid repeated n-grams of this many tokens; 0 allows all."""
    sample: Sampling | None = None
    """Draw translations instead of searching."""
    diverse_groups: int = 1
    """Number of groups of diverse beam search."""
    diversity_strength: float = DIVERSITY
    """Cost of a token that an earlier group chose in the same step, as a log-probability."""
    coverage_penalty: float = 0.0
    """Beta of GNMT's coverage penalty (`heedful.search.coverage`); 0 is off."""

    def __post_init__(self) -> None:
        """Resolve the number of candidates among which EOS counts."""
        if not self.eos_candidates:
            object.__setattr__(self, "eos_candidates", self.width)

    @property
    def width(self) -> int:
        """Open hypotheses of each group; of the whole beam if there is one group."""
        return self.beam // self.diverse_groups

    @classmethod
    def of(cls, recipe: "SearchConfig", options: SearchOptions | None = None) -> "SearchSettings":
        """
        Put the options of a caller over the settings of a recipe.

        Parameters
        ----------
        recipe : SearchConfig
            The table ``search`` of a recipe.
        options : SearchOptions, optional
            What the caller asks for; what is None there is the recipe's.

        Returns
        -------
        SearchSettings
            With nothing left open.

        Notes
        -----
        The only place where texts such as ``gnmt:0.6`` and ``twice`` become values.
        """
        options = options or SearchOptions()
        penalty = LengthPenalty.parse(options.length_penalty or recipe.length_penalty)
        stopping = StoppingPolicy(options.stop or recipe.stop, recipe.length_limit_policy)
        beam = options.width(recipe.beam)
        width = beam // options.diverse_groups
        strength, beta = options.diversity_strength, options.coverage_penalty
        if beam == 1:
            options.check_coverage()
        if options.sample is not None or beam == 1:
            beta = 0.0  # nothing is compared: a recipe's does not act
        return cls(
            beam=beam,
            n_best=options.n_best,
            penalty=penalty,
            limit=LengthLimit.parse(str(options.max_length or recipe.max_length)),
            stopping=stopping.resolved_for(penalty),
            eos_candidates=2 * width if recipe.eos_candidates == "twice" else width,
            min_length=recipe.min_length if options.min_length is None else options.min_length,
            renormalise=recipe.renormalise,
            no_repeat_ngram=options.no_repeat_ngram,
            sample=options.sample,
            diverse_groups=options.diverse_groups,
            diversity_strength=DIVERSITY if strength is None else strength,
            coverage_penalty=recipe.coverage_penalty if beta is None else beta,
        )


PAPER_SEARCH = SearchSettings()
"""The paper's (section 6.1)."""
