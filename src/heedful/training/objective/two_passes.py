"""
SimCut and R-Drop: two passes over each batch, whose predictions should agree.

::

    batch ─┬─ pass, dropout ───────────── p ─┐
           └─ pass, other dropout, cut? ─ q ─┴─ cross-entropy and divergence (`chunked_pair_loss`)

SimCut (Gao et al. 2022, “Bi-SimCut”, equation 5): in the second pass some embeddings are zero,

::

    CE(p) + alpha KL(p || q)                         alpha 3, each token cut with probability 0.05

and the gradient flows through p as well as q. R-Drop (Liang et al. 2021): the passes differ only in
dropout, and both are trained. The paper and the authors' code for sequences (dropreg/R-Drop,
`rdrop_cross_entropy_loss.py`) add both cross-entropies to alpha times the mean of the two
divergences, with alpha 5. The README of the same repository takes the mean of the cross-entropies,
which doubles the weight of the same alpha. Here the loss is half of the paper's

::

    (CE(p) + CE(q)) / 2 + alpha / 4 (KL(p || q) + KL(q || p))

so that a token counts once, as with any other objective, and clipping and the learning rates of SGD
have the same meaning.
"""

from collections.abc import Iterator
from contextlib import nullcontext

from torch import Tensor

from heedful.data.batching import Batch, Rows
from heedful.kernels.api import PairFactors, chunked_pair_loss
from heedful.model.contracts import Seq2Seq, count_flops
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.training.objective.cut import cut_embeddings
from heedful.training.objective.likelihood import Likelihood, LossPart
from heedful.training.state import StepTotals


class TwoPasses:
    """
    The likelihood of references, with a divergence between two passes.

    `name`: name in the log. `cut`: probability that an embedding is zero in the second pass.
    `single_pass_steps`: number of steps with only the likelihood, before two passes begin.
    """

    figure = "divergence"

    def __init__(
        self,
        name: str,
        factors: PairFactors,
        likelihood: Likelihood,
        cut: float = 0.0,
        single_pass_steps: int = 0,
    ) -> None:
        self.name, self.factors, self.likelihood, self.cut = name, factors, likelihood, cut
        self.single_pass_steps = single_pass_steps

    def describe(self) -> str:
        """Describe the objective for the messages at the start of training."""
        cut = f", {100 * self.cut:g}% of the tokens cut in the second pass" if self.cut else ""
        start = f" from step {self.single_pass_steps + 1:,}" if self.single_pass_steps else ""
        return f"{self.name}, two passes{start}{cut}"

    def parts(self, model: Seq2Seq, batch: Batch, rows: Rows, step: int) -> Iterator[LossPart]:
        """Compute the loss of a micro-batch, in one part."""
        # `Trainer.check_memory` has step 0 and must compute both passes
        if 0 < step <= self.single_pass_steps:
            yield from self.likelihood.parts(model, batch, rows, step)
            return
        first, penalty = self._states(model, batch, 0.0)  # (pairs, target, d_model)
        second, other_penalty = self._states(model, batch, self.cut)
        real = batch.target_out != model.padding  # (pairs, target)
        pair = chunked_pair_loss(
            first[real],  # (target tokens, d_model)
            second[real],
            batch.target_out[real],  # (target tokens,)
            model.output.weight,
            model.output.bias,
            self.factors,
            self.likelihood.smoothing,
            self.likelihood.form,
        )
        loss, value = pair.loss, pair.loss.detach()
        # the trainer has counted one pass; add the second pass
        flops, needed_flops = count_flops(model, batch.source_lengths, batch.target_lengths)
        tokens = batch.target_tokens
        if penalty is not None and other_penalty is not None:
            # turn the mean over the tokens of both passes into a sum over the tokens of one pass
            penalty = (penalty.float() + other_penalty.float()) / 2 * tokens
            loss = loss + penalty
        added = None if penalty is None else penalty.detach()
        yield LossPart(
            loss,
            lambda: StepTotals(
                float(value),
                float(pair.nll),
                flops=float(flops),
                needed_flops=float(needed_flops),
                penalty=0.0 if added is None else float(added),
                figure=float(pair.divergence),
                pairs=float(tokens),
            ),
            has_penalty=added is not None,
        )

    @staticmethod
    def _states(model: Seq2Seq, batch: Batch, cut: float) -> tuple[Tensor, Tensor | None]:
        """Compute the decoder's states in one pass, and the model's penalty."""
        assert isinstance(model, EncoderDecoder)
        with cut_embeddings(model, cut) if cut else nullcontext():
            states = model.states(batch.source, batch.target_in)
        return states, model.penalty()
