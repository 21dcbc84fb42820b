"""A list of modules of one class, which torch's own does not tell a checker of types."""

from collections.abc import Iterator
from typing import Generic, TypeVar, cast

from torch import nn

Part = TypeVar("Part", bound=nn.Module)


class Parts(nn.ModuleList, Generic[Part]):
    """torch's list, with the same names of weights."""

    def __iter__(self) -> Iterator[Part]:
        return cast("Iterator[Part]", super().__iter__())

    @property
    def first(self) -> Part:
        """The first of them."""
        return next(iter(self))
