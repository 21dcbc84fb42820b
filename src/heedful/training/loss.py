"""
Label-smoothed cross-entropy (section 5.4), computed without holding all logits.

Two readings of “label smoothing of value e” exist, called `form` here and
`train.smoothing_target` in a recipe:

::

    uniform   1 - e on the target and e / V on every class: Szegedy et al. 2015, cited by the paper
    others    1 - e on the target and e / (V - 1) on every other class: the authors' code

`plain_loss` is the definition. `chunked_loss` gives the same sums and gradients: it takes a few
rows at a time, and since the gradient with respect to the logits is known in closed form (softmax
minus the smoothed target), it computes the gradients on the way forward and lets the logits go.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.kernels.api import bias_gradient, linear_forward, matmul, subtracted_softmax
from heedful.model.output import chunk_rows, logits

# Probabilities of this many rows are kept until their part of the weight's gradient is computed:
# more rows are fewer products and more memory. With 37,000 classes and one thread a base step took
# 5.6 s with 2,048 rows and 6.0 s with 113; others were not compared.
_KEPT_ROWS = 2048
SMOOTHING_FORMS = ("uniform", "others")


def smoothed_target(
    targets: Int[Tensor, " rows"], classes: int, smoothing: float, form: str
) -> Float[Tensor, "rows classes"]:
    """
    Compute the smoothed target distribution.

    Parameters
    ----------
    targets : Tensor of int, shape (rows,)
        The right class of each row.
    classes : int
        Size of the vocabulary.
    smoothing : float
        The e of the module's text.
    form : {'uniform', 'others'}
        Which classes share the e, see above.

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
    weight: Float[Tensor, "classes d_model"],
    bias: Float[Tensor, " classes"] | None = None,
    smoothing: float = 0.1,
    form: str = "uniform",
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """
    Compute the loss by its definition.

    Parameters
    ----------
    states : Tensor of float, shape (rows, d_model)
        Decoder states of real target positions, without padding.
    targets : Tensor of int, shape (rows,)
        The tokens to predict.
    weight : Tensor of float, shape (classes, d_model)
        The output matrix.
    bias : Tensor of float, shape (classes,), optional
        Added to every row of logits.
    smoothing : float, default 0.1
        The share of probability that is taken from the target (see `form`).
    form : {'uniform', 'others'}, default 'uniform'
        Where it goes: to all classes alike, or to all but the target.

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
    log_probabilities = torch.log_softmax(logits(states, weight, bias).float(), dim=1)
    wanted = smoothed_target(targets, weight.size(0), smoothing, form)
    loss = -(wanted * log_probabilities).sum()
    return loss, nn.functional.nll_loss(log_probabilities, targets, reduction="sum")


def chunked_loss(
    states: Float[Tensor, "rows d_model"],
    targets: Int[Tensor, " rows"],
    weight: Float[Tensor, "classes d_model"],
    bias: Float[Tensor, " classes"] | None = None,
    smoothing: float = 0.1,
    form: str = "uniform",
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """
    Compute the same loss, some rows at a time.

    Parameters
    ----------
    states : Tensor of float, shape (rows, d_model)
        Decoder states of real target positions, without padding.
    targets : Tensor of int, shape (rows,)
        The tokens to predict.
    weight : Tensor of float, shape (classes, d_model)
        The output matrix.
    bias : Tensor of float, shape (classes,), optional
        Added to every row of logits.
    smoothing : float, default 0.1
        The share of probability that is taken from the target (see `form`).
    form : {'uniform', 'others'}, default 'uniform'
        Where it goes: to all classes alike, or to all but the target.

    Returns
    -------
    loss : Tensor of float, scalar
        Sum over the rows of the cross-entropy with the smoothed target; has gradients.
    nll : Tensor of float, scalar
        Sum of the negative log-probabilities of the targets; has none.

    Notes
    -----
    Needs memory for about 2,000 rows of probabilities instead of all rows of logits, probabilities
    and gradients. Sums and exponentials are computed in fp32 whatever the type of the states; the
    probabilities themselves are rounded to that type.
    """
    loss, nll = _ChunkedLoss.apply(states, targets, weight, bias, smoothing, form)
    return loss, nll


class _ChunkedLoss(torch.autograd.Function):
    """
    The loss with gradients computed in the forward pass and scaled in the backward pass.

    The smoothed target is `on` at the right class and `off` elsewhere, so for each row

    ::

        loss                 = -(on - off) log p(right) - off * sum over classes of log p
        gradient of scores   = softmax - off - (on - off) at the right class

    With log p = score - log Z, sums over classes need only the sum of the weight's rows, so only
    the softmax is computed for every class.
    """

    @staticmethod
    def forward(ctx, states, targets, weight, bias, smoothing, form):  # type: ignore[no-untyped-def]
        off, on = _off_and_on(weight.size(0), smoothing, form)
        wanted = any(ctx.needs_input_grad)
        row_sum = weight.sum(dim=0, dtype=torch.float32)  # (d_model,)
        bias_sum = 0.0 if bias is None else bias.float().sum()
        gradients = _Gradients(states, weight, bias) if wanted else None
        chosen, spread = [], []
        for part in chunk_rows(len(targets), weight.size(0), states.device):
            scores = linear_forward(states[part], weight, bias)  # (rows, classes)
            buffer = scores if gradients is None else gradients.buffer_for(part)
            right, log_z = subtracted_softmax(scores, targets[part], on - off, buffer)
            chosen.append((right - log_z).sum())
            # sum over classes of log p, (rows,): the scores of a row add up to state . row_sum
            all_classes = states[part].float() @ row_sum + bias_sum - weight.size(0) * log_z
            spread.append(all_classes.sum())
            if gradients is not None:
                gradients.add(part, buffer)
        nll = -torch.stack(chosen).sum()
        loss = (on - off) * nll - off * torch.stack(spread).sum()
        ctx.gradients = None if gradients is None else gradients.total(off, row_sum)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx, upstream, _):  # type: ignore[no-untyped-def]
        gradients = ctx.gradients
        # on a GPU, looking at the number would wait for it
        if upstream.device.type != "cpu" or float(upstream) != 1.0:
            gradients = [None if g is None else g * upstream.to(g.dtype) for g in gradients]
        d_states, d_weight, d_bias = gradients
        return d_states, None, d_weight, d_bias, None, None


class _Gradients:
    """
    Running sums of the loss gradients of states, weight and bias.

    The gradient of the weight sums over rows. It has as many rows as there are classes, so adding
    to it costs as much as a product of a hundred rows. Several chunks are therefore collected for
    one product.
    """

    def __init__(self, states: Tensor, weight: Tensor, bias: Tensor | None) -> None:
        self.states, self.weight = states, weight
        self.d_states = torch.empty_like(states)
        self.d_weight: Tensor | None = None
        self.d_bias = None if bias is None else torch.zeros(bias.shape, device=bias.device)
        rows = _rows_kept(len(states), weight.size(0), states.device)
        self.kept = torch.empty(rows, weight.size(0), dtype=states.dtype, device=states.device)
        self.first = self.last = 0

    def buffer_for(self, part: slice) -> Tensor:
        """Return the buffer of these rows' probabilities; multiply first if it is full."""
        if part.stop - self.first > len(self.kept):
            self._multiply()
        return self.kept[part.start - self.first : part.stop - self.first]

    def add(self, part: slice, gradient: Tensor) -> None:
        """Multiply the gradient of the scores, which is in the rows of `buffer_for`."""
        self.d_states[part] = matmul(gradient, self.weight)
        self.last = part.stop

    def _multiply(self) -> None:
        """Add the collected rows to the gradients of weight and bias, and clear them."""
        kept = self.kept[: self.last - self.first]
        product = torch.mm(kept.t(), self.states[self.first : self.last])  # (classes, d_model)
        if self.d_weight is None:
            self.d_weight = product
        else:  # only a sum of several products needs fp32
            self.d_weight = self.d_weight.float()
            self.d_weight += product.float()
        if self.d_bias is not None:
            self.d_bias += bias_gradient(kept)
        self.first = self.last

    def total(self, off: float, row_sum: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Subtract `off` at every class, and return the three gradients in their own types."""
        self._multiply()
        assert self.d_weight is not None
        self.d_states -= (off * row_sum).to(self.d_states.dtype)
        self.d_weight -= (off * self.states.sum(dim=0, dtype=torch.float32)).to(self.d_weight.dtype)
        d_bias = None if self.d_bias is None else self.d_bias - off * len(self.states)
        d_weight = self.d_weight.to(self.weight.dtype)
        return self.d_states, d_weight, None if d_bias is None else d_bias.to(self.weight.dtype)


def _rows_kept(rows: int, classes: int, device: torch.device) -> int:
    """Divide the rows evenly: whole chunks, about `_KEPT_ROWS` of them at a time."""
    chunks = list(chunk_rows(rows, classes, device))
    together = -(-len(chunks) // max(1, round(rows / _KEPT_ROWS)))
    return sum(part.stop - part.start for part in chunks[:together])


def _off_and_on(classes: int, smoothing: float, form: str) -> tuple[float, float]:
    """Return the target probability of a wrong class and of the right one."""
    if form == "uniform":
        return smoothing / classes, 1.0 - smoothing + smoothing / classes
    if form == "others":
        return smoothing / (classes - 1), 1.0 - smoothing
    raise ValueError(f"form must be one of {SMOOTHING_FORMS}, but is {form!r}")
