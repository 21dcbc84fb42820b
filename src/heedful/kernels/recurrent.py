"""Functions for recurrent layers: an LSTM's cell, a sigmoid's gradient, weights for cuDNN."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.kernels.native.product import FLOATS, is_plain, native_products
from heedful.kernels.torch_internals import internal

# cuDNN's mode numbers; 1 is a plain cell with tanh
_MODES = {"lstm": 2, "gru": 3, "rnn": 1}


Gates = Float[Tensor, "rows gates"]
Rows = Float[Tensor, "rows width"]


def lstm_cell(from_input: Gates, from_state: Gates, c: Rows) -> tuple[Rows, Rows]:
    """
    Compute the next h and c of an LSTM; the gates' inputs add two tensors, in the order i f g o.

    A compiled function computes a row in one pass; `plain_lstm_cell` is its plain equivalent.
    """
    if not _can_compute(from_input, from_state, c):
        return plain_lstm_cell(from_input, from_state, c)
    if not torch.is_grad_enabled():
        return _compute_cell(from_input, from_state, c, None)
    h, new_c, _ = _NativeLstmCell.apply(from_input, from_state, c)
    return h, new_c


def _can_compute(from_input: Tensor, from_state: Tensor, c: Tensor) -> bool:
    """Return whether the compiled function can read the tensors; it reads no broadcast axes."""
    if torch.compiler.is_compiling() or native_products() is None or c.dim() != 2:
        return False
    gates = (len(c), 4 * c.size(1))
    return c.dtype in FLOATS and all(
        is_plain(x) and x.dtype == c.dtype and x.shape == shape
        for x, shape in ((from_input, gates), (from_state, gates), (c, c.shape))
    )


def plain_lstm_cell(from_input: Gates, from_state: Gates, c: Rows) -> tuple[Rows, Rows]:
    """Compute the same as `lstm_cell` with functions of torch."""
    i, f, g, o = (from_input + from_state).chunk(4, dim=1)  # each (rows, width)
    new_c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(new_c), new_c


class _NativeLstmCell(torch.autograd.Function):
    """
    An LSTM's cell, and the values of its gates.

    The backward pass needs only the old c and outputs of the forward pass. So with `create_graph`
    the outputs connect its derivative to the inputs, and no other tensor has to be saved.
    """

    @staticmethod
    def forward(
        ctx: Any, from_input: Tensor, from_state: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        gates = torch.empty_like(from_input, memory_format=torch.contiguous_format)
        h, new_c = _compute_cell(from_input, from_state, c, gates)
        ctx.save_for_backward(c, new_c, gates)
        ctx.set_materialize_grads(False)
        return h, new_c, gates

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor | None) -> tuple[Tensor | None, ...]:
        c, new_c, gates = ctx.saved_tensors
        d_h, d_new_c, d_gates = upstream
        if d_h is None:
            d_h = torch.zeros_like(c)
        if d_new_c is None:
            d_new_c = torch.zeros_like(c)
        if d_gates is not None or torch.is_grad_enabled():
            d_sum, d_c = _cell_gradients(c, new_c, gates, d_h, d_new_c, d_gates)
            return d_sum, d_sum, d_c
        d_sum, d_c = torch.empty_like(gates), torch.empty_like(new_c)
        ordered = [x.contiguous() for x in (gates, c, new_c, d_h, d_new_c)]
        _library().lstm_cell_gradients(
            *(x.data_ptr() for x in ordered),
            *(*c.shape, int(c.dtype == torch.float32), torch.get_num_threads()),
            *(d_sum.data_ptr(), d_c.data_ptr()),
        )
        return d_sum, d_sum, d_c


def _compute_cell(
    from_input: Tensor, from_state: Tensor, c: Tensor, gates: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Compute the next h and c; write the values of the gates to `gates`, if it is given."""
    ordered = [x.contiguous() for x in (from_input, from_state, c)]
    h, new_c = torch.empty_like(ordered[2]), torch.empty_like(ordered[2])
    _library().lstm_cell(
        *(x.data_ptr() for x in ordered),
        *(*c.shape, int(c.dtype == torch.float32), torch.get_num_threads()),
        *(None if gates is None else gates.data_ptr(), h.data_ptr(), new_c.data_ptr()),
    )
    return h, new_c


def _cell_gradients(
    c: Tensor, new_c: Tensor, gates: Tensor, d_h: Tensor, d_new_c: Tensor, d_gates: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Compute, with functions of torch, the gradients of c and of the sum of the gates' inputs."""
    i, f, g, o = gates.chunk(4, dim=1)
    bounded = torch.tanh(new_c)
    d_cell = d_new_c + d_h * o * (1 - bounded * bounded)
    d_values = torch.cat([d_cell * g, d_cell * c, d_cell * i, d_h * bounded], dim=1)
    if d_gates is not None:
        d_values = d_values + d_gates
    slopes = torch.cat([i * (1 - i), f * (1 - f), 1 - g * g, o * (1 - o)], dim=1)
    return d_values * slopes, d_cell * f


def _library() -> Any:
    """Return the compiled functions, which `lstm_cell` has found."""
    library = native_products()
    assert library is not None
    return library


def sigmoid_gradient(
    gradient: Float[Tensor, "*#shape"], out: Float[Tensor, "*shape"]
) -> Float[Tensor, "*shape"]:
    """Compute the gradient of a sigmoid's input from the gradient of its output."""
    differentiate = internal("torch.ops.aten.sigmoid_backward")
    if differentiate is None:
        return gradient * (1 - out) * out
    return differentiate(gradient, out)


def can_flatten(device: torch.device) -> bool:
    """Return whether weights can have the layout that cuDNN needs; always true on a CPU."""
    names = ("torch._use_cudnn_rnn_flatten_weight", "torch._cudnn_rnn_flatten_weight")
    return device.type != "cuda" or all(internal(name) is not None for name in names)


def wants_flat_weights() -> bool:
    """Return whether cuDNN needs a layer's weights in one block; call only if `can_flatten`."""
    return bool(internal("torch._use_cudnn_rnn_flatten_weight")())


@torch.no_grad()
def flatten_weights(rnn: nn.RNNBase, cell: str) -> None:
    """Store a layer's weights in one block of memory; call only if `can_flatten`."""
    internal("torch._cudnn_rnn_flatten_weight")(
        [*rnn.parameters()],
        5 if rnn.proj_size else 4,  # weights of each direction
        rnn.input_size,
        _MODES[cell],
        rnn.hidden_size,
        rnn.proj_size,
        1,  # layer
        True,  # batch first
        rnn.bidirectional,
    )
