"""
Heads with unequal keys and values, made equal without changing what they compute.

CTranslate2 splits queries, keys and values into heads of one width. The narrower kind is filled up
with zeros: zeros in queries and keys add nothing to their products, zeros in values meet columns of
zeros in the output projection. Queries are still scaled by the width that keys had, which is an
attribute there.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from heedful.config.schema import ModelConfig


def head_widths(model: ModelConfig, side: str) -> tuple[int, int, int]:
    """
    Compute the shape of the heads of one side.

    Parameters
    ----------
    model : ModelConfig
        The settings.
    side : {'encoder', 'decoder'}
        Whose.

    Returns
    -------
    heads : int
        How many.
    d_k : int
        Width of queries and keys.
    d_v : int
        Width of values.

    Notes
    -----
    Where settings are absent, d_model is divided among the heads.
    """
    heads = getattr(model, f"{side}_heads") or model.heads
    usual = model.d_model // heads
    return heads, model.d_k or usual, model.d_v or usual


def with_equal_heads(model: ModelConfig, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """
    Fill heads up.

    Parameters
    ----------
    model : ModelConfig
        The settings.
    weights : mapping of str to Tensor
        By our names.

    Returns
    -------
    dict of str to Tensor
        The same names; in every attention keys are as wide as values.

    Notes
    -----
    What is equal already stays the same object.
    """
    found = dict(weights)
    for name, weight in weights.items():
        side, _, rest = name.partition(".")
        if "attention.project_" not in rest:
            continue
        heads, d_k, d_v = head_widths(model, side)
        width = max(d_k, d_v)
        if d_k == d_v:
            continue
        if "project_in" in rest:
            sizes = (heads * d_k, heads * d_k, heads * d_v)
            found[name] = torch.cat([_filled(part, heads, width) for part in weight.split(sizes)])
        elif rest.endswith("weight"):
            found[name] = _filled(weight.t(), heads, width).t().contiguous()
    return found


def _filled(rows: Tensor, heads: int, width: int) -> Tensor:
    """Append rows of zeros to each head."""
    each = rows.unflatten(0, (heads, -1))
    missing = each.new_zeros(heads, width - each.size(1), *each.shape[2:])
    return torch.cat([each, missing], dim=1).flatten(0, 1)
