"""Functions of torch for recurrent layers: a sigmoid's gradient, and cuDNN's layout of weights."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.kernels.torch_internals import internal

# cuDNN's mode numbers; 1 is a plain cell with tanh
_MODES = {"lstm": 2, "gru": 3, "rnn": 1}


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
