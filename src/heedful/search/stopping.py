"""
When a beam search is over, and what becomes of hypotheses that reach the length limit.

::

    when-none-can-win   no open hypothesis can beat the best complete one (section 6.1: “terminate
                        early when possible”); loses nothing
    when-beam-finished  as many hypotheses as the beam is wide are complete (fairseq; Hugging
                        Face's early_stopping = true)
    as-ctranslate2      the same, but without a length penalty ``when-none-can-win``
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
    Say how searches end that differ between toolkits.

    Attributes
    ----------
    among_twice : bool, default False
        Whether an end counts among the best 2 x beam candidates of a step instead of `beam`.
    stop : str, default 'when-none-can-win'
        When a sentence is done.
    length_limit_policy : {'cut', 'end', 'force', 'keep'}, default 'cut'
        What becomes of a hypothesis at its limit: it is cut, and counts where too few have ended;
        or the end symbol is written for nothing; or it is written at its own probability
        (fairseq); or the hypothesis is cut and counts like any other.
    renormalise : bool, default False
        Whether the probabilities of what may come next are made to add up to one.
    min_length : int, default 0
        Fewest tokens before the end symbol.

    Notes
    -----
    The defaults are the paper's, as far as it says.
    """

    among_twice: bool = False
    stop: str = "when-none-can-win"
    length_limit_policy: str = "cut"
    renormalise: bool = False
    min_length: int = 0

    def __post_init__(self) -> None:
        """Refuse a rule that there is not."""
        if self.stop not in STOPS:
            raise SettingError(f"stop must be {' or '.join(STOPS)}, but is {self.stop!r}.")

    def under(self, penalty: LengthPenalty) -> "StoppingPolicy":
        """
        Choose the rule that ``as-ctranslate2`` stands for.

        Parameters
        ----------
        penalty : LengthPenalty
            Of the search.

        Returns
        -------
        StoppingPolicy
            With one of the other three rules.

        Notes
        -----
        Where the length does not count, the first hypothesis that ends as the best of its step is
        the best there will be.
        """
        if self.stop != "as-ctranslate2":
            return self
        counts = penalty.divisor(2) > 1.0
        return replace(self, stop="when-beam-finished" if counts else "when-none-can-win")

    @property
    def has_places(self) -> bool:
        """Whether what has ended keeps its place among the `beam` best of a step."""
        return self.stop in ("as-joey", "as-opennmt")

    @property
    def needs_no_more(self) -> bool:
        """Whether a search may be over with as many complete hypotheses as are asked for."""
        return self.stop in ("when-none-can-win", "as-opennmt")

    def in_groups(self) -> "StoppingPolicy":
        """
        Choose the rule for beams that have no places: those of groups and of phrases.

        Returns
        -------
        StoppingPolicy
            With ``when-beam-finished`` instead of ``as-joey`` or ``as-opennmt``.

        Notes
        -----
        Neither toolkit has such beams.
        """
        return replace(self, stop="when-beam-finished") if self.has_places else self

    def counted(self, penalty: LengthPenalty) -> LengthPenalty:
        """
        Return a penalty that counts what the toolkit counts: OpenNMT-py the start symbol.

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
        One more for every hypothesis: it only matters between those of different lengths.
        """
        return replace(penalty, before=1) if self.stop == "as-opennmt" else penalty


@dataclass
class ClosedPlaces:
    """
    Remember which places of a beam have held an end, for the rule ``as-joey``.

    Attributes
    ----------
    closed : set of int
        Those that have.

    Notes
    -----
    After ``search.py`` of Joey NMT 2.3.
    """

    closed: set[int] = field(default_factory=set)

    def close(self, ended: Sequence[bool]) -> bool:
        """
        Note which places hold an end in this step.

        Parameters
        ----------
        ended : sequence of bool
            For each place of the beam, whether its hypothesis ends or is dead.

        Returns
        -------
        bool
            Whether all places have held an end by now.

        Notes
        -----
        Places are counted, not hypotheses: another may stand where one has ended.
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
    Decide whether a sentence is searched on.

    Parameters
    ----------
    stop : {'when-none-can-win', 'when-beam-finished', 'as-transformers'}
        The rule.
    best_open : float
        Log-probability of the best open hypothesis.
    length : int
        Steps so far.
    limit : int
        Greatest length it may reach, the end symbol included.
    penalty : LengthPenalty
        Never falls with the length.
    complete : sequence of Hypothesis
        Complete hypotheses so far, best first.
    wanted : int
        How many there must be before the search may stop.

    Returns
    -------
    bool
        False if it is over.

    Notes
    -----
    Only ``when-none-can-win`` looks ahead to the greatest length.
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
    Decide whether an open hypothesis may still enter the list of the best.

    Parameters
    ----------
    best_open : float
        Log-probability of the best open hypothesis.
    limit : int
        Greatest length it may reach, the end symbol included.
    penalty : LengthPenalty
        Never falls with the length.
    complete : sequence of Hypothesis
        Complete hypotheses so far, best first.
    wanted : int
        How many will be returned.

    Returns
    -------
    bool
        False if none can.

    Notes
    -----
    Log-probabilities only fall, so the best that can become of it is its present one divided by
    the largest divisor.
    """
    if best_open == float("-inf"):
        return False
    if len(complete) < wanted:
        return True
    return best_open / penalty.divisor(limit) > complete[wanted - 1].score
