"""
The label-smoothed loss of a fixed number of rows; some rows do not count.

A GPU graph has a fixed shape, so batches are filled up with rows that must not change the result.
The sums and gradients equal `heedful.kernels.loss.plain_loss` for the rows that count. One kernel
computes the loss and overwrites the logits with their gradient. So the logits are written once and
read twice. The plain equivalent of the kernel is `plain_rows`.
"""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.kernels.loss import smoothed_shares
from heedful.kernels.torch_internals import is_plain_torch
from heedful.kernels.triton_launch import triton_kernels

# The logits of a chunk take 1/32 of a GPU's memory, such as 2.5 GB of 80 GB.
_SHARE = 32

RowLosses = tuple[Float[Tensor, " rows"], Float[Tensor, " rows"]]
"""Loss and negative log-probability of each row, in fp32; zero for rows that do not count."""


def masked_loss(
    states: Float[Tensor, "rows d_model"],
    targets: Int[Tensor, " rows"],
    counts: Bool[Tensor, " rows"],
    weight: Float[Tensor, "classes d_model"],
    bias: Float[Tensor, " classes"] | None = None,
    smoothing: float = 0.1,
    form: str = "uniform",
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """
    Sum the loss (with gradients) and the negative log-probabilities of the rows that count.

    `form`: as in `heedful.kernels.loss`. The call never waits for the device.
    """
    loss, nll = _MaskedLoss.apply(states, targets, counts, weight, bias, smoothing, form)
    return loss, nll


class _MaskedLoss(torch.autograd.Function):
    """The loss, whose gradients are computed in the forward pass."""

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, states, targets, counts, weight, bias, smoothing, form
    ):
        off, on = smoothed_shares(weight.size(0), smoothing, form)
        differentiate = rows_function(states)
        losses, nlls = [], []
        d_states = torch.empty_like(states)
        d_weight, d_bias = None, None if bias is None else bias.new_zeros(len(bias)).float()
        for part in _chunks(states, weight.size(0)):
            scores = nn.functional.linear(states[part], weight, bias)  # (rows, classes)
            loss, nll = differentiate(scores, targets[part], counts[part], off, on)
            losses.append(loss.sum())
            nlls.append(nll.sum())
            # `scores` now contains the gradient of the scores
            torch.mm(scores, weight, out=d_states[part])
            product = torch.mm(scores.t(), states[part])  # (classes, d_model)
            d_weight = product if d_weight is None else d_weight.float().add_(product)
            if d_bias is not None:
                d_bias += scores.sum(dim=0, dtype=torch.float32)
        of_output = (part if part is None else part.to(weight.dtype) for part in (d_weight, d_bias))
        ctx.gradients = (d_states, *of_output)
        nll = torch.stack(nlls).sum()
        ctx.mark_non_differentiable(nll)
        return torch.stack(losses).sum(), nll

    @staticmethod
    def backward(ctx, upstream, _):  # type: ignore[no-untyped-def]
        # always multiplied: a CUDA graph cannot read `upstream` to see whether it is 1
        d_states, d_weight, d_bias = (
            None if gradient is None else gradient * upstream.to(gradient.dtype)
            for gradient in ctx.gradients
        )
        return d_states, None, None, d_weight, d_bias, None, None


def _chunks(states: Tensor, classes: int) -> Iterator[slice]:
    """Divide the rows into parts whose logits take little of the device's memory."""
    memory = 1 << 27
    if states.is_cuda:
        memory = torch.cuda.get_device_properties(states.device).total_memory // _SHARE
    size = max(64, memory // (classes * states.element_size()) // 64 * 64)
    for start in range(0, len(states), size):
        yield slice(start, min(start + size, len(states)))


def plain_rows(
    scores: Float[Tensor, "rows classes"],
    targets: Int[Tensor, " rows"],
    counts: Bool[Tensor, " rows"],
    off: float,
    on: float,
) -> RowLosses:
    """
    Compute the loss of each row, and overwrite its scores with their gradient.

    `off, on`: the smoothed target's probability of an incorrect class and of the correct class.
    """
    log_p = torch.log_softmax(scores.float(), dim=1)
    right = log_p.gather(1, targets.unsqueeze(1)).squeeze(1)  # (rows,)
    loss = -(on - off) * right - off * log_p.sum(dim=1)
    gradient = log_p.exp_().sub_(off)
    gradient.scatter_add_(1, targets.unsqueeze(1), gradient.new_full((len(scores), 1), off - on))
    scores.copy_(gradient * counts.unsqueeze(1))
    return loss * counts, -right * counts


def rows_function(x: Tensor) -> Callable[..., RowLosses]:
    """Choose the function for row losses on a device: Triton's if available, else `plain_rows`."""
    if x.device.type != "cuda" or is_plain_torch():
        return plain_rows
    kernels = triton_kernels(x.device)
    return plain_rows if kernels is None else kernels.loss_rows
