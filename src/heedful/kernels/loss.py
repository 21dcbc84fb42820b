"""
Label-smoothed cross-entropy (section 5.4), computed without storing all logits.

“Label smoothing of value e” has two readings. The argument `form` chooses one of them, as
`train.smoothing_target` does in a recipe:

::

    uniform   1 - e on the target and e / V on every class: Szegedy et al. 2015, cited by the paper
    others    1 - e on the target and e / (V - 1) on every other class: the authors' code

`plain_loss` is the definition. `chunked_loss` computes the same sums and gradients, a few rows at a
time. The gradient with respect to the logits has a closed form (softmax minus the smoothed target).
So the forward pass computes the gradients and frees the logits. For the softmax, a compiled
function reads the scores from memory once; functions of torch take several passes over memory.
"""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.kernels.linear import bias_gradient, linear_forward, matmul
from heedful.kernels.native.product import FLOATS, is_plain, native_products

# About this many logits are computed at once: enough for fast multiplications, but few enough for a
# large cache (32 MiB in fp32). A GPU computes more at once, because it takes longer to start a
# kernel than to run it on few rows. The numbers were chosen by hand.
_CHUNK_LOGITS, _CHUNK_ROWS = 1 << 23, 2048
_GPU_CHUNK_LOGITS, _GPU_CHUNK_ROWS = 1 << 28, 8192
# Probabilities of this many rows are kept until their part of the weight's gradient is computed.
# More rows need fewer multiplications but more memory. With 37,000 classes and one thread, a step
# of the base model took 5.6 s with 2,048 rows and 6.0 s with 113 rows; other numbers were not
# compared.
_KEPT_ROWS = 2048

SMOOTHING_FORMS = ("uniform", "others")


def chunk_rows(rows: int, vocabulary: int, device: torch.device | None = None) -> Iterator[slice]:
    """
    Divide the rows into chunks whose logits are computed at once.

    A chunk has at most about eight million logits on a CPU and 270 million on a GPU. But each chunk
    except the last has at least 64 rows, because multiplying fewer rows is slow.
    """
    numbers, most = _CHUNK_LOGITS, _CHUNK_ROWS
    if device is not None and device.type != "cpu":
        numbers, most = _GPU_CHUNK_LOGITS, _GPU_CHUNK_ROWS
    size = max(64, min(most, numbers // vocabulary // 32 * 32))
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def softmax_kind(device: torch.device) -> str:
    """Return the kind of softmax on a device, compiled or plain; both agree up to rounding."""
    return "compiled" if device.type == "cpu" and native_products() is not None else "plain"


def subtracted_softmax(
    scores: Float[Tensor, "rows classes"],
    targets: Int[Tensor, " rows"],
    excess: float,
    out: Float[Tensor, "rows classes"],
) -> tuple[Float[Tensor, " rows"], Float[Tensor, " rows"]]:
    """
    Write the softmax of each row, minus `excess` at its target, to `out`.

    `out` may be the tensor `scores`.

    Returns the scores of the targets and the logarithms of the normalizers, in fp32.
    """
    compiled = _loss_rows(scores, targets, excess, out)
    return plain_subtracted_softmax(scores, targets, excess, out) if compiled is None else compiled


def plain_subtracted_softmax(
    scores: Float[Tensor, "rows classes"],
    targets: Int[Tensor, " rows"],
    excess: float,
    out: Float[Tensor, "rows classes"],
) -> tuple[Float[Tensor, " rows"], Float[Tensor, " rows"]]:
    """Compute `subtracted_softmax` with functions of torch, in four passes over the scores."""
    largest = scores.amax(dim=1).float()  # (rows,)
    right = scores.gather(1, targets.unsqueeze(1)).squeeze(1).float()  # (rows,)
    probabilities = torch.softmax(scores, dim=1, out=out)
    # log Z = largest score - log of the largest probability: this avoids a logsumexp, and the
    # largest probability is never tiny, so its logarithm is safe
    log_z = largest - probabilities.amax(dim=1).float().log()  # (rows,)
    # position of (row, target) in the flattened probabilities: one indexed subtraction
    flat_index = torch.arange(len(out), device=out.device) * out.size(1) + targets  # (rows,)
    out.view(-1)[flat_index] -= excess
    return right, log_z


def _loss_rows(
    scores: Float[Tensor, "rows classes"],
    targets: Int[Tensor, " rows"],
    excess: float,
    out: Float[Tensor, "rows classes"],
) -> tuple[Float[Tensor, " rows"], Float[Tensor, " rows"]] | None:
    """Compute `subtracted_softmax` with compiled functions; None if these cannot be used."""
    if not all(map(is_plain, (scores, targets, out))):
        return None
    if scores.dtype not in FLOATS or out.dtype != scores.dtype:
        return None
    rows, classes = scores.shape
    if out.shape != scores.shape or targets.shape != (rows,):
        return None  # functions of torch raise the error
    library = native_products()
    if library is None or not (scores.is_contiguous() and out.is_contiguous()):
        return None
    targets = targets.to(torch.long).contiguous()
    if rows and not 0 <= int(targets.min()) <= int(targets.max()) < classes:
        raise IndexError(f"targets must be from 0 to {classes - 1}")
    is_fp32, threads = scores.dtype == torch.float32, torch.get_num_threads()
    sizes = (0 if is_fp32 else threads * classes, rows, rows)
    memory, right, normalizers = (
        torch.empty(size, dtype=torch.float32, device="cpu") for size in sizes
    )
    library.loss_rows(
        *(scores.data_ptr(), targets.data_ptr(), rows, classes, excess),
        *(int(is_fp32), threads, memory.data_ptr()),
        *(out.data_ptr(), right.data_ptr(), normalizers.data_ptr()),
    )
    return right, normalizers


def smoothed_target(
    targets: Int[Tensor, " rows"], classes: int, smoothing: float, form: str
) -> Float[Tensor, "rows classes"]:
    """Compute the smoothed target distribution, whose rows sum to one, for the plain loss."""
    off, on = smoothed_shares(classes, smoothing, form)
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
    Compute the loss by its definition: two sums over the rows, which are the real target positions.

    The first sum is the cross-entropy with the smoothed target, and the second is the negative
    log-probability of the targets themselves. They are not means: the caller divides by the number
    of tokens of the batch on all ranks. `smoothing` is the probability mass that is taken from the
    target. `form` determines the classes that receive this mass: all classes equally (``uniform``),
    or all except the target (``others``).
    """
    log_probabilities = torch.log_softmax(nn.functional.linear(states, weight, bias).float(), dim=1)
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
    Compute `plain_loss` a few rows at a time; the first sum has gradients, the second has none.

    The function needs memory for about 2,000 rows of probabilities, or up to 8,192 on a GPU, and
    never for all logits, probabilities and gradients. Sums and exponentials are computed in fp32
    whatever the type of the states; the probabilities themselves are rounded to that type.
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

    With log p = score - log Z, the sum of log p over classes needs only the sum of the weight's
    rows. So only the softmax is computed for every class.
    """

    @staticmethod
    def forward(ctx, states, targets, weight, bias, smoothing, form):  # type: ignore[no-untyped-def]
        off, on = smoothed_shares(weight.size(0), smoothing, form)
        wanted = any(ctx.needs_input_grad)
        row_sum = weight.sum(dim=0, dtype=torch.float32)  # (d_model,)
        bias_sum = 0.0 if bias is None else bias.float().sum()
        gradients = OutputGradients(states, weight, bias) if wanted else None
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
        d_states, d_weight, d_bias = scale_gradients(ctx.gradients, upstream)
        return d_states, None, d_weight, d_bias, None, None


Gradients = Sequence[Tensor | None]


def scale_gradients(gradients: Gradients, upstream: Tensor) -> Gradients:
    """Multiply the gradients that the forward pass computed by the upstream gradient."""
    # on a GPU, reading the number would wait for the device
    if upstream.device.type == "cpu" and float(upstream) == 1.0:
        return gradients
    return [None if g is None else g * upstream.to(g.dtype) for g in gradients]


class OutputGradients:
    """
    Running sums of the loss's gradients with respect to states, weight and bias.

    The gradient of the weight is a sum over the rows of `states`. It has one row for each class, so
    adding to it costs as much as multiplying a hundred rows of states by the weight. Several chunks
    are therefore collected for one multiplication.
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
        """Return the buffer for these rows' probabilities; empty it first if it is full."""
        if part.stop - self.first > len(self.kept):
            self._multiply()
        return self.kept[part.start - self.first : part.stop - self.first]

    def add(self, part: slice, gradient: Tensor) -> None:
        """Compute the states' gradient from `gradient`, the scores' gradient in the buffer."""
        self.d_states[part] = matmul(gradient, self.weight)
        self.last = part.stop

    def _multiply(self) -> None:
        """Add the collected rows to the gradients of weight and bias, and empty the buffer."""
        collected = self.kept[: self.last - self.first]
        product = torch.mm(collected.t(), self.states[self.first : self.last])  # (classes, d_model)
        if self.d_weight is None:
            self.d_weight = product
        else:  # only a sum over several buffers needs fp32
            self.d_weight = self.d_weight.float()
            self.d_weight += product.float()
        if self.d_bias is not None:
            self.d_bias += bias_gradient(collected)
        self.first = self.last

    def total(self, off: float, row_sum: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Subtract `off`, the target probability common to all classes; return the gradients."""
        self._multiply()
        assert self.d_weight is not None
        self.d_states -= (off * row_sum).to(self.d_states.dtype)
        self.d_weight -= (off * self.states.sum(dim=0, dtype=torch.float32)).to(self.d_weight.dtype)
        d_bias = None if self.d_bias is None else self.d_bias - off * len(self.states)
        d_weight = self.d_weight.to(self.weight.dtype)
        return self.d_states, d_weight, None if d_bias is None else d_bias.to(self.weight.dtype)


def _rows_kept(rows: int, classes: int, device: torch.device) -> int:
    """Choose the size of a buffer: whole chunks, about `_KEPT_ROWS` rows in total or one chunk."""
    chunks = list(chunk_rows(rows, classes, device))
    together = -(-len(chunks) // max(1, round(rows / _KEPT_ROWS)))
    return sum(part.stop - part.start for part in chunks[:together])


def smoothed_shares(classes: int, smoothing: float, form: str) -> tuple[float, float]:
    """Return the target probability of an incorrect class and of the correct class."""
    if form == "uniform":
        return smoothing / classes, 1.0 - smoothing + smoothing / classes
    if form == "others":
        return smoothing / (classes - 1), 1.0 - smoothing
    raise ValueError(f"form must be one of {SMOOTHING_FORMS}, but is {form!r}")
