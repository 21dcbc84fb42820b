"""Checks of what goes into blocks and models, with messages in plain sentences."""

from typing import Any

import torch
from torch import Tensor

from heedful.errors import ArgumentError


def check_states(owner: str, width: int, least_axes: int = 1, **states: Any) -> None:
    """Refuse anything but a float tensor with `width` numbers on its last axis."""
    for name, x in states.items():
        if (
            not isinstance(x, Tensor)
            or x.dim() < least_axes
            or x.size(-1) != width
            or not x.is_floating_point()
        ):
            form = "(batch, time, d_model)" if least_axes == 3 else "(..., d_model)"
            raise ArgumentError(
                f"`{name}` of {owner} must be a tensor of floats of shape {form} with "
                f"d_model={width}, but {_what_came(x)}."
            )


def check_tensors(owner: str, **tensors: Any) -> None:
    """Refuse anything but tensors split into heads."""
    for name, x in tensors.items():
        if not isinstance(x, Tensor):
            raise ArgumentError(
                f"`{name}` of {owner} must be a tensor of floats of shape "
                f"(batch, heads, time, width), but {_what_came(x)}."
            )


def check_mask(owner: str, mask: Any) -> Tensor:
    """Return the mask; refuse one that is not boolean or would broadcast along the wrong axes."""
    is_tensor = isinstance(mask, Tensor)
    if not is_tensor or mask.dtype is not torch.bool or mask.dim() != 4:
        raise ArgumentError(
            f"the mask of {owner} must be a tensor of bool of shape (batch, heads or 1, "
            "queries or 1, keys), true where a query may attend to a key, but "
            f"{_what_came(mask)}."
        )
    return mask


def check_mixed(owner: str, width: int, x: Any, keys_from: Any, mask: Tensor | None) -> None:
    """Refuse what only attention can do: two sequences, and a mask by heads or queries."""
    check_states(owner, width, least_axes=3, queries_from=x)
    if keys_from is not x and (keys_from.shape, keys_from.data_ptr()) != (x.shape, x.data_ptr()):
        raise ArgumentError(
            f"`keys_from` of {owner} must be the sequence of `queries_from`, because it mixes the "
            "positions of one, but another came; attend to it by MultiHeadAttention."
        )
    if mask is not None and mask.size(1) * mask.size(2) > 1:
        raise ArgumentError(
            f"the mask of {owner} must have shape (batch, 1, 1, keys), because it does not tell "
            f"heads or queries apart, but {_what_came(mask)}."
        )


def check_ids(owner: str, **ids: Any) -> None:
    """Refuse anything but an integer tensor with two axes and at least one id."""
    for name, x in ids.items():
        fits = isinstance(x, Tensor) and x.dim() == 2 and x.dtype in (torch.int64, torch.int32)
        if not fits or not x.numel():
            raise ArgumentError(
                f"`{name}` of {owner} must be a tensor of token ids (int64) of shape (batch, time)"
                f" with at least one of both, but {_what_came(x)}."
            )


def _what_came(value: Any) -> str:
    """Describe what was given instead."""
    if isinstance(value, Tensor):
        kind = str(value.dtype).removeprefix("torch.")
        return f"one of {kind} of shape {tuple(value.shape)} came"
    return f"a {type(value).__name__} came"
