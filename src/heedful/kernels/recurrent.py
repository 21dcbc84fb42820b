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
    Compute the next h and c of an LSTM; each gate is the sum of two inputs, in the order i f g o.

    A compiled function computes a row in one pass; `plain_lstm_cell` is its plain equivalent.
    """
    tensors = (from_input, from_state, c)
    alike = all(is_plain(x) and x.dtype == c.dtype for x in tensors)
    if alike and c.dtype in FLOATS and native_products() is not None:
        return _NativeLstmCell.apply(*tensors)
    return plain_lstm_cell(*tensors)


def plain_lstm_cell(from_input: Gates, from_state: Gates, c: Rows) -> tuple[Rows, Rows]:
    """Compute the same as `lstm_cell` with functions of torch."""
    i, f, g, o = (from_input + from_state).chunk(4, dim=1)  # each (rows, width)
    new_c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(new_c), new_c


class _NativeLstmCell(torch.autograd.Function):
    """An LSTM's cell, whose backward pass needs the values of the gates."""

    @staticmethod
    def forward(
        ctx: Any, from_input: Tensor, from_state: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor]:
        ordered = [x.contiguous() for x in (from_input, from_state, c)]
        gates, h, new_c = (torch.empty_like(ordered[place]) for place in (0, 2, 2))
        _library().lstm_cell(
            *(x.data_ptr() for x in ordered),
            *(*c.shape, int(c.dtype == torch.float32)),
            *(x.data_ptr() for x in (gates, h, new_c)),
        )
        ctx.save_for_backward(from_input, from_state, c, gates, new_c)
        return h, new_c

    @staticmethod
    def backward(ctx: Any, d_h: Tensor, d_new_c: Tensor) -> tuple[Tensor, ...]:
        from_input, from_state, c, gates, new_c = ctx.saved_tensors
        if torch.is_grad_enabled():  # for second derivatives
            out = plain_lstm_cell(from_input, from_state, c)
            inputs, upstream = (from_input, from_state, c), (d_h, d_new_c)
            return torch.autograd.grad(out, inputs, upstream, create_graph=True)
        d_gates, d_c = torch.empty_like(gates), torch.empty_like(new_c)
        ordered = [x.contiguous() for x in (gates, c, new_c, d_h, d_new_c)]
        _library().lstm_cell_gradients(
            *(x.data_ptr() for x in ordered),
            *(*c.shape, int(c.dtype == torch.float32)),
            *(d_gates.data_ptr(), d_c.data_ptr()),
        )
        return d_gates, d_gates, d_c


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
