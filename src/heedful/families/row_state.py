"""Decoding states that select source tensors by sentence and all other tensors by row."""

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

from torch import Tensor

from heedful.model.contracts import DecodingState

State = TypeVar("State", bound="RowState")


@dataclass(frozen=True)
class RowState(DecodingState):
    """A state with fields that are tensors, tuples of tensors, None or numbers."""

    of_source: ClassVar[tuple[str, ...]]
    """Fields with one row for each sentence; all other fields have one row for each hypothesis."""

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
