"""
The coverage penalty of GNMT (Wu et al. 2016, equation 14).

::

    s(Y, X) = log P(Y|X) / lp(Y) + cp(X; Y)
    cp(X; Y) = beta * sum_i log(min(sum_j p_ij, 1))

p_ij is the attention weight of source position i at target step j. As in lp(Y), the step that chose
the end symbol counts. The positions are all symbols that the encoder reads, including the end
symbol but excluding padding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.errors import SettingError
from heedful.model.contracts import DecodingState, Seq2Seq
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.search.ensemble import Ensemble
from heedful.search.step import NextLogProbabilities

# Attention may underflow to zero, and its logarithm would make every score minus infinity.
# OpenNMT-py's `coverage_wu` has no such floor. The smallest normal number is about exp(-87).
_FLOOR = torch.finfo(torch.float32).tiny


@runtime_checkable
class SingleAttention(DecodingState, Protocol):
    """The state of a decoder that attends once per step (`TargetDecoder.attends_once`)."""

    mask: Tensor
    """True at real source tokens, shape (sentences, 1, source)."""
    attention: Tensor | None
    """Weights of the last step, shape (rows, source)."""


@dataclass(frozen=True)
class CoverageState:
    """A decoder's state together with the sum of its attention so far."""

    state: SingleAttention
    """The decoder's own state."""
    coverage: Float[Tensor, "rows source"]
    """Sum of the attention weights of all steps."""

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> "CoverageState":
        """Select rows. `sentences`: indices of the sentences that stay; all if None."""
        state = self.state.select(rows, sentences)
        assert isinstance(state, SingleAttention)
        return CoverageState(state, self.coverage[rows])


def coverage_logs(
    coverage: Float[Tensor, "*batch source"], real: Bool[Tensor, "*rows source"]
) -> Float[Tensor, "*batch source"]:
    """Compute the logarithm of each position's coverage, at most 0; it is 0 for padding."""
    return coverage.clamp(_FLOOR, 1.0).log().masked_fill(~real, 0.0)


def coverage_penalty(weights: Float[Tensor, "target source"], beta: float) -> float:
    """Compute the penalty of one given target, including its end symbol."""
    coverage = weights.sum(dim=0)  # (source,)
    return beta * float(coverage_logs(coverage, torch.ones_like(coverage, dtype=torch.bool)).sum())


def coverage_penalties(
    state: DecodingState, beta: float, beams: int, width: int
) -> list[list[float]]:
    """Compute the penalty of each row, beam by beam, including the attention of the last step."""
    if not isinstance(state, CoverageState):
        return [[0.0] * width] * beams
    real = state.state.mask[:, 0]  # (sentences, source)
    each_sentence = state.coverage.unflatten(0, (len(real), -1))
    penalties = beta * coverage_logs(each_sentence, real.unsqueeze(1)).sum(dim=-1)
    return penalties.view(beams, width).tolist()


def cover(
    next_log_probabilities: NextLogProbabilities, state: DecodingState, beta: float, rows: int
) -> tuple[NextLogProbabilities, DecodingState]:
    """Wrap the step function and the first state to add up the attention, unless beta is 0."""
    if not beta:
        return next_log_probabilities, state
    assert isinstance(state, SingleAttention)
    start = torch.zeros(rows, state.mask.size(-1), device=state.mask.device)

    def covering(tokens: Tensor, state: DecodingState) -> tuple[Tensor, DecodingState]:
        assert isinstance(state, CoverageState)
        scores, newer = next_log_probabilities(tokens, state.state)
        assert isinstance(newer, SingleAttention) and newer.attention is not None
        return scores, CoverageState(newer, state.coverage + newer.attention)

    return covering, CoverageState(state, start)


def check_coverage(beta: float | None, models: Sequence[Seq2Seq]) -> None:
    """Refuse a coverage penalty unless a single model attends to the source once per step."""
    if not beta:
        return
    models = [member for candidate in models for member in _members_of(candidate)]
    model, off = models[0], "leave the penalty out, or set it to 0"
    if len(models) > 1:
        reason = f"an ensemble has one attention in each of its {len(models)} models; {off}"
    elif isinstance(model, EncoderDecoder) and not model.decoder.attends:
        reason = f"this decoder has no attention to the source; {off}"
    elif not isinstance(model, EncoderDecoder) or not model.decoder.attends_once:
        reason = f"this decoder has one for each layer and head; {off}"
    elif not model.encoder.positions_differ:
        reason = f"this decoder gives the same attention to every source position; {off}"
    else:
        return
    raise SettingError(
        "the coverage penalty needs a recurrent decoder with a single attention to the source, "
        f"but {reason}."
    )


def _members_of(model: Seq2Seq) -> list[Seq2Seq]:
    """Return the members of an ensemble, or the model itself."""
    return model.members if isinstance(model, Ensemble) else [model]
