"""Checks of tensor shapes claimed by a file, before memory is allocated."""

from collections.abc import Sequence
from math import prod
from pathlib import Path

from heedful.files import open_ordinary

# No file here has more than a few hundred tensors, each with about a hundred bytes of header.
_LARGEST_HEADER = 1 << 20


def check_header(path: Path) -> None:
    """Raise `ValueError` for a safetensors file with an implausibly large header."""
    with open_ordinary(path) as file:
        size = int.from_bytes(file.read(8), "little")
    if size > _LARGEST_HEADER:
        raise ValueError(f"its header has {size:,} bytes, more than {_LARGEST_HEADER:,}")


def is_empty_and_vast(shape: Sequence[int]) -> bool:
    """Whether a shape has a dimension above 1 but no elements, which would mislead other code."""
    return max(shape, default=0) > max(1, prod(shape))
