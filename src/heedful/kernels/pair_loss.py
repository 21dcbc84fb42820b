"""
The loss of two passes over the same targets: cross-entropies and divergences.

p and q are the first and the second pass's distributions over V classes, and t is the smoothed
target. With the four factors a, b, c and d of `PairFactors`, each row adds

::

    loss             a CE(t, p) + b CE(t, q) + c KL(p || q) + d KL(q || p)
    of logits of p   a (p - t) + c p (log p - log q - KL(p || q)) + d (p - q)
    of logits of q   b (q - t) + d q (log q - log p - KL(q || p)) + c (q - p)

`plain_pair_loss` is the definition, with gradients by autograd through all logits of both passes.
`chunked_pair_loss` gives the same sums and gradients a few rows at a time. Both sets of logits of
these rows are in memory at once; only the gradients above are kept.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.kernels.linear import linear_forward
from heedful.kernels.loss import (
    OutputGradients,
    chunk_rows,
    scale_gradients,
    smoothed_shares,
    smoothed_target,
    subtracted_softmax,
)

# Number of values per logit in memory at once: scores and probabilities of both passes.
_NUMBERS = 4


class PairFactors(NamedTuple):
    """Factors of the four terms of the loss; a + b and c + d are positive."""

    first: float
    """Weight of the cross-entropy of the first pass, p."""
    second: float
    """Weight of the cross-entropy of the second pass, q."""
    forward: float
    """Weight of KL(p || q)."""
    backward: float
    """Weight of KL(q || p)."""


class PairLoss(NamedTuple):
    """Sums over the rows."""

    loss: Float[Tensor, ""]
    """The loss to minimize, with gradients."""
    nll: Float[Tensor, ""]
    """Negative log-probability of the targets: the mean of both passes, weighted by the factors."""
    divergence: Float[Tensor, ""]
    """The mean of both divergences, weighted by their factors."""


def plain_pair_loss(
    first: Float[Tensor, "rows d_model"],
    second: Float[Tensor, "rows d_model"],
    targets: Int[Tensor, " rows"],
    weight: Float[Tensor, "classes d_model"],
    bias: Float[Tensor, " classes"] | None,
    factors: PairFactors,
    smoothing: float = 0.1,
    form: str = "uniform",
) -> PairLoss:
    """
    Compute the loss by its definition.

    `first, second`: decoder states of the same target tokens in the two passes.
    """
    log_p, log_q = (
        torch.log_softmax(nn.functional.linear(states, weight, bias).float(), dim=1)
        for states in (first, second)
    )  # (rows, classes)
    wanted = smoothed_target(targets, weight.size(0), smoothing, form)
    loss = log_p.new_zeros(())
    nll = log_p.new_zeros(())
    for log_probabilities, factor in ((log_p, factors.first), (log_q, factors.second)):
        loss = loss - factor * (wanted * log_probabilities).sum()
        nll = nll + factor * nn.functional.nll_loss(log_probabilities, targets, reduction="sum")
    forward = (log_p.exp() * (log_p - log_q)).sum()
    backward = (log_q.exp() * (log_q - log_p)).sum()
    apart = factors.forward * forward + factors.backward * backward
    return PairLoss(
        loss + apart,
        (nll / (factors.first + factors.second)).detach(),
        (apart / (factors.forward + factors.backward)).detach(),
    )


def chunked_pair_loss(
    first: Float[Tensor, "rows d_model"],
    second: Float[Tensor, "rows d_model"],
    targets: Int[Tensor, " rows"],
    weight: Float[Tensor, "classes d_model"],
    bias: Float[Tensor, " classes"] | None,
    factors: PairFactors,
    smoothing: float = 0.1,
    form: str = "uniform",
) -> PairLoss:
    """
    Compute the loss of `plain_pair_loss`, a few rows at a time.

    Probabilities, logarithms and sums are computed in fp32 whatever the type of the states;
    gradients of logits are rounded to that type.
    """
    return PairLoss(
        *_ChunkedPairLoss.apply(first, second, targets, weight, bias, factors, smoothing, form)
    )


class _ChunkedPairLoss(torch.autograd.Function):
    """The loss, whose gradients are computed in the forward pass."""

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, first, second, targets, weight, bias, factors, smoothing, form
    ):
        off, on = smoothed_shares(weight.size(0), smoothing, form)
        gradients = [OutputGradients(states, weight, bias) for states in (first, second)]
        row_sum = weight.sum(dim=0, dtype=torch.float32)  # (d_model,)
        bias_sum = 0.0 if bias is None else bias.float().sum()
        sums = []
        for part in chunk_rows(len(targets), _NUMBERS * weight.size(0), first.device):
            scores = [
                linear_forward(states[part], weight, bias).float() for states in (first, second)
            ]  # (rows, classes)
            buffers = [of_pass.buffer_for(part) for of_pass in gradients]
            right, log_z, apart = _differentiate(scores, targets[part], factors, on - off, buffers)
            # sums over classes of log p, (rows,): the scores of a row add up to state . row_sum
            spread = [
                states[part].float() @ row_sum + bias_sum - weight.size(0) * of_pass
                for states, of_pass in zip((first, second), log_z, strict=True)
            ]
            sums.append(torch.stack([part.sum() for part in (*right, *spread, *apart)]))
            for of_pass, buffer in zip(gradients, buffers, strict=True):
                of_pass.add(part, buffer)
        right_p, right_q, all_p, all_q, forward, backward = torch.stack(sums).sum(dim=0)
        ctx.gradients = _totals(gradients, factors, off, row_sum)
        nll = -(factors.first * right_p + factors.second * right_q)
        spread = factors.first * all_p + factors.second * all_q
        apart = factors.forward * forward + factors.backward * backward
        loss = (on - off) * nll - off * spread + apart
        nll = nll / (factors.first + factors.second)
        divergence = apart / (factors.forward + factors.backward)
        ctx.mark_non_differentiable(nll, divergence)
        return loss, nll, divergence

    @staticmethod
    def backward(ctx, upstream, *_):  # type: ignore[no-untyped-def]
        d_first, d_second, d_weight, d_bias = scale_gradients(ctx.gradients, upstream)
        return d_first, d_second, None, d_weight, d_bias, None, None, None


def _differentiate(
    scores: Sequence[Tensor],
    targets: Int[Tensor, " rows"],
    factors: PairFactors,
    excess: float,
    out: Sequence[Tensor],
) -> tuple[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]]:
    """
    Write the gradients of some rows' logits, without the part common to all classes, to `out`.

    `scores`: logits of both passes in fp32; the logits of the first pass are overwritten. `excess`:
    probability of the right class in the smoothed target, minus the probability of any other class.
    `out`: buffers in the type of the states.

    Returns log-probabilities of the targets in both passes, logarithms of both normalizers, and
    both divergences, each of shape (rows,). A divergence whose factor is 0 is returned as 0.
    """
    a, b, c, d = factors
    p, q = (torch.empty_like(of_pass) for of_pass in scores)
    right_p, z_p = subtracted_softmax(scores[0], targets, 0.0, p)
    right_q, z_q = subtracted_softmax(scores[1], targets, 0.0, q)
    # log p - log q = apart - shift, where the shift of a row is the difference of its log
    # normalizers
    apart, shift = scores[0].sub_(scores[1]), z_p - z_q
    forward = torch.linalg.vecdot(p, apart) - shift if c else torch.zeros_like(shift)
    backward = shift - torch.linalg.vecdot(q, apart) if d else torch.zeros_like(shift)
    # q (b + c + d (log q - log p - KL)) - c p, and the same formula with the passes exchanged
    if d:
        row = (b + c + d * (shift - backward)).unsqueeze(1)
        of_q = torch.mul(apart, -d).add_(row).mul_(q).sub_(p, alpha=c)
    elif b:
        of_q = q.mul_(b + c).sub_(p, alpha=c)
    else:
        of_q = q.sub_(p).mul_(c)
    row = (a + d - c * (shift + forward)).unsqueeze(1)
    of_p = apart.mul_(c).add_(row).mul_(p)
    if d:
        of_p.sub_(q, alpha=d)
    rows = torch.arange(len(targets), device=targets.device)
    for gradient, factor, buffer in ((of_p, a, out[0]), (of_q, b, out[1])):
        if factor:
            gradient[rows, targets] -= factor * excess
        buffer.copy_(gradient)  # the only rounding
    return (right_p - z_p, right_q - z_q), (z_p, z_q), (forward, backward)


def _totals(
    gradients: list[OutputGradients], factors: PairFactors, off: float, row_sum: Tensor
) -> list[Tensor | None]:
    """Subtract the target probability `off` of every class; add up both passes' gradients."""
    d_first, d_weight, d_bias = gradients[0].total(factors.first * off, row_sum)
    d_second, other_weight, other_bias = gradients[1].total(factors.second * off, row_sum)
    if d_bias is not None and other_bias is not None:
        d_bias = d_bias + other_bias
    return [d_first, d_second, d_weight + other_weight, d_bias]
