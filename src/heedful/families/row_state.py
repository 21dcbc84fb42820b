"""Decoding states that select their own tensors: the source's by sentences, all others by rows."""

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

from torch import Tensor

from heedful.model.contracts import DecodingState

State = TypeVar("State", bound="RowState")


@dataclass(frozen=True)
class RowState(DecodingState):
    """A state of tensors, tuples of tensors, None and numbers; only tensors are selected."""

    of_source: ClassVar[tuple[str, ...]]
    """The fields with one row for each sentence; all other fields have one for each hypothesis."""

    @property
    def sentences(self) -> int:
        """Number of sentences in the batch."""
        source: Tensor = getattr(self, self.of_source[-1])
        return source.size(0)

    def select(self: State, rows: Tensor, sentences: Tensor | None = None) -> State:
        chosen = {
            field.name: _select(getattr(self, field.name), rows)
            for field in fields(self)
            if field.name not in self.of_source
        }
        if sentences is not None:
            chosen |= {name: _select(getattr(self, name), sentences) for name in self.of_source}
        return replace(self, **chosen)


def _select(value: Any, rows: Tensor) -> Any:
    """Select rows of each tensor."""
    if isinstance(value, tuple):
        return tuple(_select(part, rows) for part in value)
    return value.index_select(0, rows) if isinstance(value, Tensor) else value
