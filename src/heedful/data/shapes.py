"""Shapes that a file gives for its tensors, checked before anything of that size is made."""

from collections.abc import Sequence
from math import prod


def is_empty_and_vast(shape: Sequence[int]) -> bool:
    """Tell whether a shape holds nothing but names a size that would be believed elsewhere."""
    return max(shape, default=0) > max(1, prod(shape))
