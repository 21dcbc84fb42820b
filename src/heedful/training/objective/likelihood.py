"""
The interface of objectives, and the default objective: the likelihood of the references.

An objective yields the losses of a micro-batch one after the other. The trainer runs the backward
pass of each loss before it requests the next loss. So only one computation graph is in memory.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from heedful.data.batching import Batch, Rows
from heedful.kernels.api import chunked_loss
from heedful.model.contracts import Seq2Seq
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.training.objective.guidance import GuidedAttention
from heedful.training.state import StepTotals


class LossPart(NamedTuple):
    """One part of the loss of a micro-batch."""

    loss: Tensor
    """The summed loss, from which the backward pass starts."""
    read_sums: Callable[[], StepTotals]
    """
    Read the sums of this part; tokens and the operations of one pass are counted by the trainer.

    Call this function after the backward pass, because reading a number waits for the GPU.
    """
    has_penalty: bool = False
    """Whether the loss includes a penalty: `Seq2Seq.penalty` or guided attention."""


@runtime_checkable
class Objective(Protocol):
    """The interface of an objective, which training minimizes."""

    @property
    def figure(self) -> str:
        """Name of `StepTotals.figure` in the log; empty if the objective has no figure."""

    def describe(self) -> str:
        """Describe the objective for the messages at the start of training."""

    def parts(self, model: Seq2Seq, batch: Batch, rows: Rows, step: int) -> Iterator[LossPart]:
        """
        Compute the loss of a micro-batch in parts.

        Parameters
        ----------
        model : Seq2Seq
            The model in training.
        batch : Batch
            The pairs, padded: `source`, `target_in` and `target_out`.
        rows : array of int
            The indices of the pairs in the training text.
        step : int
            The update to which the batch belongs.

        Yields
        ------
        LossPart
            A sum over target tokens, and its contribution to the log.

        Notes
        -----
        The gradient is divided by the number of target tokens of the whole batch.
        """


class Likelihood:
    """Cross-entropy with the references (section 5.4)."""

    figure = ""

    def __init__(
        self,
        smoothing: float = 0.0,
        form: str = "uniform",
        weight: float = 1.0,
        guide: GuidedAttention | None = None,
    ) -> None:
        self.smoothing, self.form, self.weight, self.guide = smoothing, form, weight, guide

    def describe(self) -> str:
        """Describe the objective for the messages at the start of training."""
        guided = self.guide and f", attention guided for {self.guide.steps:,} steps"
        return f"likelihood of the references{guided or ''}"

    def parts(self, model: Seq2Seq, batch: Batch, rows: Rows, step: int) -> Iterator[LossPart]:
        """Compute the loss of a micro-batch, in one part."""
        del rows
        states, off_diagonal = self._states(model, batch, step)  # (pairs, target, d_model)
        real = batch.target_out != model.padding  # (pairs, target)
        loss, nll = chunked_loss(
            states[real],  # (target tokens, d_model)
            batch.target_out[real],  # (target tokens,)
            model.output.weight,
            model.output.bias,
            self.smoothing,
            self.form,
        )
        if self.weight != 1.0:
            loss = self.weight * loss
        value = loss.detach()
        penalty = model.penalty()
        if penalty is not None:
            # turn the mean over tokens into a sum, like the loss
            penalty = penalty.float() * batch.target_tokens
        if off_diagonal is not None:
            penalty = off_diagonal if penalty is None else penalty + off_diagonal
        if penalty is None:
            yield LossPart(loss, lambda: StepTotals(float(value), float(nll)))
            return
        added = penalty.detach()
        yield LossPart(
            loss + penalty,
            lambda: StepTotals(float(value), float(nll), penalty=float(added)),
            has_penalty=True,
        )

    def _states(self, model: Seq2Seq, batch: Batch, step: int) -> tuple[Tensor, Tensor | None]:
        """Compute the decoder's states, and the attention penalty until it has faded."""
        guide = self.guide
        if guide is None or not guide.strength_at(step) or not isinstance(model, EncoderDecoder):
            return model.states(batch.source, batch.target_in), None
        own: list[Tensor] = []
        cross: list[Tensor] = []
        states = model.decode(model.encode(batch.source), batch.target_in, (own, cross))
        return states, guide.penalty(cross, batch, model.padding, step)
