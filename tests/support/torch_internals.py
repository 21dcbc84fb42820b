"""Names that torch's documentation does not promise: hidden from heedful."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from heedful.kernels import torch_internals
from heedful.kernels.torch_internals import internal


@contextmanager
def hidden(*names: str) -> Iterator[set[str]]:
    """Look names up as if this torch lacked them; yields those that were looked up."""
    resolve, missed = torch_internals._resolve, set()

    def without(name: str) -> object:
        if name not in names:
            return resolve(name)
        missed.add(name)
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch_internals, "_resolve", without)
        internal.cache_clear()
        try:
            yield missed
        finally:
            internal.cache_clear()
