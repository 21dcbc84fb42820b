"""
Stopping rules that reproduce other toolkits' outputs; each may miss the best hypothesis.

::

    when-beam-finished  the number of complete hypotheses equals the beam size (fairseq; Hugging
                        Face's early_stopping = true)
    as-ctranslate2      ``when-beam-finished``, but ``when-none-can-win`` without a length penalty
    as-transformers     the number of complete hypotheses equals the beam size, and the best open
                        hypothesis would not beat the worst of them if it ended now (Hugging Face's
                        early_stopping = false)
    as-joey             a hypothesis that has ended keeps its position in the beam and is extended
                        like the others; the search stops when a hypothesis has ended at every
                        position (Joey NMT 2)
    as-opennmt          a hypothesis that has ended leaves its position empty for one step; the
                        search stops when the best candidate of a step ends and the n-best list is
                        full (OpenNMT-py 3.5)

Letters in shapes: B beams, K open hypotheses of each, C candidates.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from heedful.search.length import LengthPenalty
from heedful.search.observer import DropReason
from heedful.search.stopping import BeamProgress, Pruned, StoppingRule, can_still_win

if TYPE_CHECKING:
    from torch import Tensor

    from heedful.search.step import Candidates


class WhenBeamFinished(StoppingRule):
    """Stop when the number of complete hypotheses equals the beam size."""

    name = "when-beam-finished"
    fills_beam: ClassVar[bool] = True
    drop_reason: ClassVar[DropReason] = "full"

    def goes_on(self, progress: BeamProgress) -> bool:
        """Continue until enough hypotheses are complete or none is open."""
        return progress.best_open > float("-inf") and len(progress.complete) < progress.wanted


class AsCTranslate2(WhenBeamFinished):
    """``when-none-can-win`` if there is no length penalty, else ``when-beam-finished``."""

    name = "as-ctranslate2"

    def resolved_for(self, penalty: LengthPenalty) -> str:
        """Name the rule: without a penalty, CTranslate2 stops as ``when-none-can-win`` does."""
        # without a penalty the divisor is 1 at every length
        return WhenBeamFinished.name if penalty.divisor(2) > 1.0 else StoppingRule.name


class AsTransformers(StoppingRule):
    """Stop when no open hypothesis would join the list of complete ones if it ended now."""

    name = "as-transformers"
    fills_beam: ClassVar[bool] = True

    def goes_on(self, progress: BeamProgress) -> bool:
        """Compare scores at the current length."""
        return can_still_win(
            progress.best_open,
            progress.length,
            progress.penalty,
            progress.complete,
            progress.wanted,
        )


class _KeepsPlaces(StoppingRule):
    """A rule that keeps the positions of ended hypotheses; not for groups and constraints."""

    def without_places(self) -> str:
        """Name the rule to apply with groups or constraints, which Joey NMT and OpenNMT-py lack."""
        return WhenBeamFinished.name


class AsJoey(_KeepsPlaces):
    """Stop when a hypothesis has ended at each position of the beam (Joey NMT 2.3, `search.py`)."""

    name = "as-joey"
    fills_beam: ClassVar[bool] = True
    extends_ended: ClassVar[bool] = True

    def prune(
        self,
        candidates: "Candidates",
        ended: "Tensor",
        prefixes: "Tensor",
        beam: int,
        end_token: int,
    ) -> Pruned:
        """Keep the best candidates; hypotheses that have ended do not end again."""
        columns = _first_columns(ended, beam)
        over = (prefixes == end_token).any(dim=1).view(len(ended), -1)  # (B, K)
        ends = ended & ~over.gather(1, candidates.parents)  # (B, C)
        return columns, candidates.totals.gather(1, columns), ends

    def goes_on(self, progress: BeamProgress) -> bool:
        """Count the positions in the beam where a hypothesis has ended."""
        progress.closed.update(
            place
            for place, hypothesis in enumerate(progress.open)
            if hypothesis.tokens[-1] == progress.end_token
            or hypothesis.log_probability == float("-inf")
        )
        return len(progress.closed) < len(progress.open)


class AsOpenNMT(_KeepsPlaces):
    """Stop when a step's best candidate ends and the n-best list is full (OpenNMT-py 3.5.1)."""

    name = "as-opennmt"

    def prune(
        self,
        candidates: "Candidates",
        ended: "Tensor",
        prefixes: "Tensor",
        beam: int,
        end_token: int,
    ) -> Pruned:
        """Keep the best candidates; candidates with the end symbol are dead."""
        del prefixes, end_token
        columns = _first_columns(ended, beam)
        totals = candidates.totals.masked_fill(ended, float("-inf"))
        return columns, totals.gather(1, columns), ended

    def goes_on(self, progress: BeamProgress) -> bool:
        """Stop when the best candidate ends and the n-best list is full, or when none is open."""
        best_ended = progress.open[0].tokens[-1] == progress.end_token
        is_over = best_ended and len(progress.complete) >= progress.wanted
        return not is_over and progress.best_open > float("-inf")

    def counted(self, penalty: LengthPenalty) -> LengthPenalty:
        """Count the start symbol in lengths, as OpenNMT-py does."""
        return replace(penalty, before=1)


def _first_columns(ended: "Tensor", beam: int) -> "Tensor":
    """Choose the best candidates, (B, K), including ended candidates."""
    columns = ended.new_ones(min(beam, ended.size(1))).long().cumsum(dim=0) - 1
    return columns.expand(len(ended), -1)


RULES = (WhenBeamFinished(), AsCTranslate2(), AsTransformers(), AsJoey(), AsOpenNMT())
