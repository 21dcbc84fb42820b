"""
Permutation of a model's dimensions.

The outputs of a Transformer do not change if the dimensions of its states are reordered in the same
way in all weights. Only position encodings have a fixed order of dimensions, so a permutation
converts one layout of the sinusoids to another with the same columns.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from heedful.errors import ExchangeError

# Axis of a weight that indexes the dimensions of states, by the end of the weight's name.
_AXES = {
    "embed_source.weight": 1,
    "embed_target.weight": 1,
    "output.weight": 1,
    "output.bias": None,
    "source_positions.weight": 1,
    "target_positions.weight": 1,
    "qkv_proj.weight": 1,
    "qkv_proj.bias": None,
    "out_proj.weight": 0,
    "out_proj.bias": 0,
    "norm.weight": 0,
    "norm.bias": 0,
    "linear1.weight": 1,
    "linear1.bias": None,
    "linear2.weight": 0,
    "linear2.bias": 0,
}


def reorder_dimensions(weights: Mapping[str, Tensor], order: Tensor) -> dict[str, Tensor]:
    """Permute the dimensions of all states; sums may differ by rounding."""
    return {name: _permute_weight(name, tensor, order) for name, tensor in weights.items()}


def grouped_order(d_model: int) -> Tensor:
    """Return the permutation from interleaved to grouped sinusoids."""
    return torch.cat((torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)))


def _permute_weight(name: str, tensor: Tensor, order: Tensor) -> Tensor:
    """Permute one weight."""
    for end, axis in _AXES.items():
        if name == end or name.endswith(f".{end}"):
            return tensor if axis is None else tensor.index_select(axis, order)
    raise ExchangeError(f"{name} must be a weight of the Transformer, but is unknown.")
