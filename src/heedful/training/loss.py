"""
Label-smoothed cross-entropy (section 5.4), without ever holding all logits.

Two readings of “label smoothing of value e” exist (`SMOOTHING_FORMS`):

::

    uniform   1 - e on the target and e / V on every class: Szegedy et al. 2015, cited by the paper
    others    1 - e on the target and e / (V - 1) on every other class: the authors' code

`plain_loss` is the definition. `chunked_loss` gives the same sums and gradients: it takes a few
rows at a time, and since the gradient with respect to the logits is known in closed form
(softmax minus the smoothed target), it computes the gradients on the way forward and lets the
logits go.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.model.output import chunk_rows, logits

SMOOTHING_FORMS = ("uniform", "others")


def smoothed_target(
    targets: Int[Tensor, " rows"], classes: int, smoothing: float, form: str
) -> Float[Tensor, "rows classes"]:
    """
    Write the smoothed target distribution out.

    Parameters
    ----------
    targets : Tensor of int, shape (rows,)
        The right class of each row.
    classes : int
        Size of the vocabulary.
    smoothing : float
        The e above.
    form : {'uniform', 'others'}
        Which reading.

    Returns
    -------
    Tensor of float32, shape (rows, classes)
        Rows that sum to one.

    Notes
    -----
    Only for the plain loss and for reading.
    """
    off, on = _off_and_on(classes, smoothing, form)
    full = torch.full((len(targets), classes), off, device=targets.device)
    return full.scatter_(1, targets.unsqueeze(1), on)


def plain_loss(
    states: Float[Tensor, "rows d_model"],
    targets: Int[Tensor, " rows"],
    table: Float[Tensor, "classes d_model"],
    bias: Float[Tensor, " classes"] | None = None,
    smoothing: float = 0.1,
    form: str = "uniform",
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """
    Compute the loss as it is defined.

    Parameters
    ----------
    states : Tensor of float, shape (rows, d_model)
        Decoder states of real target positions, without padding.
    targets : Tensor of int, shape (rows,)
        The tokens to predict.
    table : Tensor of float, shape (classes, d_model)
        The output table.
    bias : Tensor of float, shape (classes,), optional
        Added to every row of logits.
    smoothing : float, default 0.1
        The share of probability that is spread.
    form : {'uniform', 'others'}, default 'uniform'
        How it is spread.

    Returns
    -------
    loss : Tensor of float, scalar
        Sum over the rows of the cross-entropy with the smoothed target.
    nll : Tensor of float, scalar
        Sum of the negative log-probabilities of the targets themselves.

    Notes
    -----
    Sums, not means: the caller divides by the tokens of the whole batch on all ranks.
    """
    log_probabilities = torch.log_softmax(logits(states, table, bias).float(), dim=1)
    wanted = smoothed_target(targets, table.size(0), smoothing, form)
    loss = -(wanted * log_probabilities).sum()
    return loss, nn.functional.nll_loss(log_probabilities, targets, reduction="sum")


def chunked_loss(
    states: Float[Tensor, "rows d_model"],
    targets: Int[Tensor, " rows"],
    table: Float[Tensor, "classes d_model"],
    bias: Float[Tensor, " classes"] | None = None,
    smoothing: float = 0.1,
    form: str = "uniform",
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """
    Compute the same loss a few rows at a time.

    Parameters
    ----------
    states : Tensor of float, shape (rows, d_model)
        Decoder states of real target positions, without padding.
    targets : Tensor of int, shape (rows,)
        The tokens to predict.
    table : Tensor of float, shape (classes, d_model)
        The output table.
    bias : Tensor of float, shape (classes,), optional
        Added to every row of logits.
    smoothing : float, default 0.1
        The share of probability that is spread.
    form : {'uniform', 'others'}, default 'uniform'
        How it is spread.

    Returns
    -------
    loss : Tensor of float, scalar
        Sum over the rows of the cross-entropy with the smoothed target; has gradients.
    nll : Tensor of float, scalar
        Sum of the negative log-probabilities of the targets; has none.

    Notes
    -----
    Memory is that of a chunk of logits instead of all (rows, classes). Sums and exponentials are
    taken in fp32 whatever the type of the states.
    """
    loss, nll = _ChunkedLoss.apply(states, targets, table, bias, smoothing, form)
    return loss, nll


class _ChunkedLoss(torch.autograd.Function):
    """
    Compute the gradients on the way forward and scale them on the way back.

    The smoothed target is `off` everywhere and `on` at the right class, so what it adds to sums and
    gradients is two small products; only the softmax itself needs a pass over all classes.
    """

    @staticmethod
    def forward(ctx, states, targets, table, bias, smoothing, form):  # type: ignore[no-untyped-def]
        classes = table.size(0)
        off, on = _off_and_on(classes, smoothing, form)
        loss = torch.zeros((), device=states.device)
        nll = torch.zeros((), device=states.device)
        row_sum = table.float().sum(dim=0)
        bias_sum = 0.0 if bias is None else bias.float().sum()
        gradients = _Gradients(states, table, bias) if any(ctx.needs_input_grad) else None
        for part in chunk_rows(len(targets), classes):
            right = targets[part]
            scores = logits(states[part], table, bias).float()
            probabilities = torch.softmax(scores, dim=1)
            # the largest probability is never tiny, so its logarithm is safe
            normaliser = scores.amax(dim=1) - probabilities.amax(dim=1).log()
            chosen = scores.gather(1, right.unsqueeze(1)).squeeze(1) - normaliser
            spread = states[part].float() @ row_sum + bias_sum - classes * normaliser
            nll -= chosen.sum()
            loss -= off * spread.sum() + (on - off) * chosen.sum()
            if gradients is not None:
                gradients.add(part, right, probabilities, on - off)
        ctx.gradients = None if gradients is None else gradients.total(off, row_sum)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx, upstream, _):  # type: ignore[no-untyped-def]
        d_states, d_table, d_bias = (
            None if gradient is None else (gradient * upstream.to(gradient.dtype))
            for gradient in ctx.gradients
        )
        return d_states, None, d_table, d_bias, None, None


class _Gradients:
    """Add up the gradients of the loss with respect to states, table and bias."""

    def __init__(self, states: Tensor, table: Tensor, bias: Tensor | None) -> None:
        self.states, self.table = states, table
        self.d_states = torch.empty_like(states)
        self.d_table = torch.zeros(table.shape, device=table.device)
        self.d_bias = None if bias is None else torch.zeros(bias.shape, device=bias.device)

    def add(self, part: slice, right: Tensor, probabilities: Tensor, excess: float) -> None:
        """Add softmax minus `excess` at the right class for some rows."""
        if self.d_bias is not None:
            self.d_bias += probabilities.sum(dim=0)
            self.d_bias.index_add_(0, right, torch.full_like(probabilities[:, 0], -excess))
        states, rounded = self.states[part], probabilities.to(self.states.dtype)
        torch.mm(rounded, self.table, out=self.d_states[part])
        self.d_states[part] -= excess * self.table[right]
        self.d_table += rounded.t() @ states
        self.d_table.index_add_(0, right, states.float(), alpha=-excess)

    def total(self, off: float, row_sum: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Take `off` at every class away, at last, and return the three in their own types."""
        self.d_states -= (off * row_sum).to(self.d_states.dtype)
        self.d_table -= off * self.states.sum(dim=0, dtype=torch.float32)
        d_bias = None if self.d_bias is None else self.d_bias - off * len(self.states)
        d_table = self.d_table.to(self.table.dtype)
        return self.d_states, d_table, None if d_bias is None else d_bias.to(self.table.dtype)


def _off_and_on(classes: int, smoothing: float, form: str) -> tuple[float, float]:
    """Return the wanted probability of a wrong class and of the right one."""
    if form == "uniform":
        return smoothing / classes, 1.0 - smoothing + smoothing / classes
    if form == "others":
        return smoothing / (classes - 1), 1.0 - smoothing
    raise ValueError(f"form must be one of {SMOOTHING_FORMS}, but is {form!r}")
