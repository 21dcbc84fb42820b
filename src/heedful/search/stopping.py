"""
The stopping rules of beam search, and the treatment of hypotheses at the length limit.

::

    when-none-can-win   no open hypothesis can enter the n-best list any more (section 6.1:
                        “terminate early when possible”)

This is the paper's rule. `heedful.search.compat` has the rules of other toolkits; each of these
rules may stop before the best hypothesis is found. Recipes and options refer to a rule by its name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from heedful.errors import SettingError
from heedful.search.hypothesis import Hypothesis, OpenHypothesis
from heedful.search.length import LengthPenalty
from heedful.search.observer import DropReason

if TYPE_CHECKING:
    from torch import Tensor

    from heedful.search.step import Candidates

# Modules whose `RULES` are stopping rules.
MODULES = ("heedful.search.compat",)


class BeamProgress(NamedTuple):
    """The state of a sentence's beam for a stopping rule; lengths include the end symbol."""

    open: Sequence[OpenHypothesis]
    """Hypotheses of the beam, best first; dead hypotheses have a probability of zero."""
    complete: Sequence[Hypothesis]
    """Complete hypotheses, the best first."""
    wanted: int
    """Number of complete hypotheses that are required."""
    length: int
    """Number of steps so far."""
    limit: int
    """Maximum length."""
    penalty: LengthPenalty
    """The length penalty, whose divisor never decreases with the length."""
    end_token: int
    """The end symbol."""
    closed: set[int]
    """Positions in the beam where a hypothesis has ended; some rules add to the set."""

    @property
    def best_open(self) -> float:
        """Log-probability of the best open hypothesis."""
        return max(hypothesis.log_probability for hypothesis in self.open)


Pruned = tuple["Tensor", "Tensor", "Tensor"]
"""Columns that stay open (beams, beam), their totals, and which candidates end."""


class StoppingRule:
    """
    The rule ``when-none-can-win``, and the base class of the other rules.

    The rule of a toolkit also determines how the beam is pruned and how lengths are counted.
    """

    name: ClassVar[str] = "when-none-can-win"
    """The name in recipes and options."""
    fills_beam: ClassVar[bool] = False
    """Whether the number of complete hypotheses must reach the beam size."""
    extends_ended: ClassVar[bool] = False
    """Whether a hypothesis that has ended is extended like open hypotheses."""
    drop_reason: ClassVar[DropReason] = "win"
    """The reason why open hypotheses are dropped at the end, for an observer."""

    def prune(
        self,
        candidates: "Candidates",
        ended: "Tensor",
        prefixes: "Tensor",
        beam: int,
        end_token: int,
    ) -> Pruned | None:
        """
        Choose the candidates that stay open, if the rule does not use `heedful.search.beam.prune`.

        Parameters
        ----------
        candidates : Candidates
            The best continuations of each beam.
        ended : Tensor
            True for candidates that end: (beams, candidates).
        prefixes : Tensor
            The tokens of each open hypothesis so far: (rows, length).
        beam : int
            Number of candidates that stay open.
        end_token : int
            The end symbol.

        Returns
        -------
        tuple of Tensor or None
            Columns that stay open, their totals, and which candidates end; None for the default.
        """
        del candidates, ended, prefixes, beam, end_token
        return None

    def goes_on(self, progress: BeamProgress) -> bool:
        """
        Decide whether a sentence's search continues if its hypotheses are below the limit.

        Parameters
        ----------
        progress : BeamProgress
            Progress of the sentence's beam.

        Returns
        -------
        bool
            False if the search ends. The paper's rule looks ahead to the limit; most other rules do
            not.
        """
        return can_still_win(
            progress.best_open,
            progress.limit,
            progress.penalty,
            progress.complete,
            progress.wanted,
        )

    def resolved_for(self, penalty: LengthPenalty) -> str:
        """Return the name of the rule to apply with this length penalty."""
        del penalty
        return self.name

    def without_places(self) -> str:
        """Name the rule to apply with groups or constraints, whose beams lack fixed positions."""
        return self.name

    def counted(self, penalty: LengthPenalty) -> LengthPenalty:
        """Adapt the penalty to how the toolkit counts lengths; unchanged by default."""
        return penalty


@cache
def stopping_rules() -> dict[str, StoppingRule]:
    """Return the stopping rules by name: the paper's rule, then the rules of `MODULES`."""
    others = (rule for module in MODULES for rule in import_module(module).RULES)
    return {rule.name: rule for rule in (StoppingRule(), *others)}


@dataclass(frozen=True)
class StoppingPolicy:
    """The stopping rule and the treatment of hypotheses at the limit; by default the paper's."""

    stop: str = "when-none-can-win"
    """Name of the stopping rule."""
    length_limit_policy: str = "cut"
    """
    The treatment of a hypothesis at its limit. ``cut``: it counts only if too few hypotheses have
    ended. ``end``: it gets the end symbol at no cost. ``force``: it gets the end symbol at the
    model's probability (fairseq). ``keep``: it is cut and counts like a complete hypothesis.
    """

    def __post_init__(self) -> None:
        """Raise `SettingError` for an unknown rule."""
        if self.stop not in stopping_rules():
            names = " or ".join(stopping_rules())
            raise SettingError(f"stop must be {names}, but is {self.stop!r}.")

    @property
    def rule(self) -> StoppingRule:
        """The stopping rule named `stop`."""
        return stopping_rules()[self.stop]

    def resolved_for(self, penalty: LengthPenalty) -> "StoppingPolicy":
        """Return the policy for a penalty; ``as-ctranslate2`` depends on the penalty."""
        return replace(self, stop=self.rule.resolved_for(penalty))

    def without_places(self) -> "StoppingPolicy":
        """Return the policy for groups and constraints (`StoppingRule.without_places`)."""
        return replace(self, stop=self.rule.without_places())


def can_still_win(
    best_open: float,
    limit: int,
    penalty: LengthPenalty,
    complete: Sequence[Hypothesis],
    wanted: int,
) -> bool:
    """
    Decide whether an open hypothesis may still enter the n-best list.

    Log-probabilities only fall, so the upper bound of a score is the current log-probability
    divided by the largest divisor. A coverage penalty is at most 0. So the bound also holds with a
    coverage penalty, but is less tight, because later attention may cover all positions.
    `best_open`: log-probability of the best open hypothesis; `limit` includes the end symbol;
    `complete` is sorted, best first; `wanted`: number of hypotheses to return.
    """
    if best_open == float("-inf"):
        return False
    if len(complete) < wanted:
        return True
    return best_open / penalty.divisor(limit) > complete[wanted - 1].score
