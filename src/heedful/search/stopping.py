"""
Stopping rules of beam search, and hypotheses at the length limit.

::

    when-none-can-win   no open hypothesis can beat the best complete one (section 6.1: “terminate
                        early when possible”); loses nothing
    when-beam-finished  as many hypotheses as the beam is wide are complete (fairseq; Hugging
                        Face's early_stopping = true)
    as-ctranslate2      ``when-beam-finished``, but ``when-none-can-win`` without a length penalty
    as-transformers     that many are complete, and the best open one, were it to end now, would
                        not beat the worst of them (Hugging Face's early_stopping = false)
    as-joey             a hypothesis that has ended keeps its place in the beam and is extended like
                        the others; the search is over when every place has held an end once (Joey
                        NMT 2)
    as-opennmt          a hypothesis that has ended leaves its place empty for one step; the search
                        is over when the best candidate of a step ends (OpenNMT-py 3.5)

The last five may stop before the best is found; they are there to give another toolkit's outputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from heedful.errors import SettingError
from heedful.search.hypothesis import Hypothesis
from heedful.search.length import LengthPenalty

STOPS = (
    "when-none-can-win",
    "when-beam-finished",
    "as-ctranslate2",
    "as-transformers",
    "as-joey",
    "as-opennmt",
)


@dataclass(frozen=True)
class StoppingPolicy:
    """
    When a search stops and what happens at the length limit.

    Notes
    -----
    The defaults are the paper's, as far as it says.
    """

    stop: str = "when-none-can-win"
    """When a sentence is done."""
    length_limit_policy: str = "cut"
    """
    What happens to a hypothesis at its limit: ``cut``, it counts only where too few have ended;
    ``end``, it gets the end symbol at no cost; ``force``, it gets the end symbol with its own
    probability (fairseq); ``keep``, it is cut and counts like any other.
    """

    def __post_init__(self) -> None:
        """Refuse an unknown rule."""
        if self.stop not in STOPS:
            raise SettingError(f"stop must be {' or '.join(STOPS)}, but is {self.stop!r}.")

    def resolved_for(self, penalty: LengthPenalty) -> "StoppingPolicy":
        """
        Return the stopping rule to apply under a length penalty: resolves ``as-ctranslate2``.

        Parameters
        ----------
        penalty : LengthPenalty
            Of the search.

        Returns
        -------
        StoppingPolicy
            The same policy with one of the other rules.

        Notes
        -----
        Where the length does not count, the first hypothesis that ends as the best of its step is
        the best there will be.
        """
        if self.stop != "as-ctranslate2":
            return self
        counts = penalty.divisor(2) > 1.0  # only without a penalty is it 1 at every length
        return replace(self, stop="when-beam-finished" if counts else "when-none-can-win")

    @property
    def has_places(self) -> bool:
        """Whether an ended hypothesis keeps its position in the beam."""
        return self.stop in ("as-joey", "as-opennmt")

    @property
    def needs_no_more(self) -> bool:
        """Whether a search may stop with as many complete hypotheses as requested."""
        return self.stop in ("when-none-can-win", "as-opennmt")

    def without_places(self) -> "StoppingPolicy":
        """
        Return the rule for searches whose beams have no fixed places: groups and constraints.

        Returns
        -------
        StoppingPolicy
            With ``when-beam-finished`` instead of ``as-joey`` or ``as-opennmt``.

        Notes
        -----
        Neither Joey NMT nor OpenNMT-py has such searches.
        """
        return replace(self, stop="when-beam-finished") if self.has_places else self

    def penalty_as_counted(self, penalty: LengthPenalty) -> LengthPenalty:
        """
        Return the penalty as the toolkit counts lengths: OpenNMT-py's include the start symbol.

        Parameters
        ----------
        penalty : LengthPenalty
            Of the search.

        Returns
        -------
        LengthPenalty
            Of the same formula.

        Notes
        -----
        One more for every hypothesis, which only matters between different lengths.
        """
        return replace(penalty, before=1) if self.stop == "as-opennmt" else penalty


@dataclass
class ClosedPlaces:
    """
    The beam positions that have held a finished hypothesis, for the rule ``as-joey``.

    Notes
    -----
    After ``search.py`` of Joey NMT 2.3.
    """

    closed: set[int] = field(default_factory=set)

    def close(self, ended: Sequence[bool]) -> bool:
        """
        Mark the beam positions whose hypotheses end in this step.

        Parameters
        ----------
        ended : sequence of bool
            For each beam position, whether its hypothesis ends or is dead.

        Returns
        -------
        bool
            Whether all positions have held a finished hypothesis.

        Notes
        -----
        Positions are counted, not hypotheses: another hypothesis may follow on the same position.
        """
        self.closed |= {place for place, has_ended in enumerate(ended) if has_ended}
        return len(self.closed) == len(ended)


def may_improve(
    stop: str,
    best_open: float,
    length: int,
    limit: int,
    penalty: LengthPenalty,
    complete: Sequence[Hypothesis],
    wanted: int,
) -> bool:
    """
    Decide whether the search of a sentence continues.

    Parameters
    ----------
    stop : {'when-none-can-win', 'when-beam-finished', 'as-transformers'}
        The rule.
    best_open : float
        Log-probability of the best open hypothesis.
    length : int
        Steps so far.
    limit : int
        Maximum length, the end symbol included.
    penalty : LengthPenalty
        Its divisor never decreases with the length.
    complete : sequence of Hypothesis
        Complete hypotheses so far, best first.
    wanted : int
        Number of hypotheses required before the search may stop.

    Returns
    -------
    bool
        False if the search of the sentence is over.

    Notes
    -----
    Only ``when-none-can-win`` looks ahead to the maximum length.
    """
    if stop == "when-none-can-win" or best_open == float("-inf"):
        return can_still_win(best_open, limit, penalty, complete, wanted)
    if stop == "when-beam-finished":
        return len(complete) < wanted
    return can_still_win(best_open, length, penalty, complete, wanted)


def can_still_win(
    best_open: float,
    limit: int,
    penalty: LengthPenalty,
    complete: Sequence[Hypothesis],
    wanted: int,
) -> bool:
    """
    Decide whether an open hypothesis may still enter the n-best list.

    Parameters
    ----------
    best_open : float
        Log-probability of the best open hypothesis.
    limit : int
        Maximum length, the end symbol included.
    penalty : LengthPenalty
        Its divisor never decreases with the length.
    complete : sequence of Hypothesis
        Complete hypotheses so far, best first.
    wanted : int
        Number of hypotheses that will be returned.

    Returns
    -------
    bool
        False if none can.

    Notes
    -----
    Log-probabilities only fall, so the upper bound is the present log-probability divided by the
    largest divisor. A coverage penalty is at most 0, so the bound holds with one, too; it is not
    as tight, for the attention to come may cover all.
    """
    if best_open == float("-inf"):
        return False
    if len(complete) < wanted:
        return True
    return best_open / penalty.divisor(limit) > complete[wanted - 1].score
