"""
Models of other toolkits, for families that heedful also has.

If another toolkit also has models of a family, `Family.readers` names a module for that toolkit.
The module interprets the settings and tensors of a checkpoint. The toolkit's reader in
`heedful.exchange` reads files, text processing and search settings, and does not depend on
families.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from heedful.errors import ExchangeError
from heedful.families.keymap import Entry, KeyMap, RowMap, Shape

Array = NDArray[np.floating]

_LARGEST = 1_000_000


@dataclass(frozen=True)
class ForeignModel:
    """The settings of a model and the map of its tensors."""

    settings: Mapping[str, Any]
    """Our `model` settings."""
    tensors: Mapping[str, Array]
    """Tensors by their names."""
    key_map: Callable[[Mapping[str, Shape], RowMap, RowMap], KeyMap]
    """Builds the map from the shapes of our weights and the row maps of source and target."""
    widths: Mapping[str, int]
    layers: Mapping[str, int]
    """Sizes by their names, compared with the tensors before a model is built."""
    factors: Mapping[str, float] = field(default_factory=dict)
    """Factors that are multiplied into our weights, such as scales of embeddings."""
    max_length: int = 0
    """Maximum number of tokens of a text if positions are learned; 0 for the default."""
    notes: tuple[str, ...] = ()
    """Remarks for the user."""


@runtime_checkable
class FamilyReader(Protocol):
    """A module that reads a toolkit's models of one family."""

    KIND: str
    """The toolkit's name for the family."""

    def is_kind(self, settings: Mapping[str, Any]) -> bool:
        """Return whether a checkpoint's settings describe a model of the family."""

    def problems(self, settings: Mapping[str, Any]) -> Iterator[str]:
        """List reasons why our models of the family cannot express the checkpoint."""

    def read_model(
        self, settings: Mapping[str, Any], tensors: Mapping[str, Array], shared: bool
    ) -> ForeignModel:
        """Read a model. `shared`: whether both sides have one vocabulary."""


def table_in(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a table of the settings; empty if there is no such table."""
    table = settings.get(name)
    return table if isinstance(table, dict) else {}


def position_entries(
    tensors: Mapping[str, Array], places: tuple[str, str], first: int
) -> tuple[list[Entry], int]:
    """
    Map the tables of learned positions of both sides; count the positions.

    `places`: names of the tables. `first`: the first used row. Positions beyond a table share its
    last row, as in our models.
    """
    shapes = [tensors[place].shape if place in tensors else () for place in places]
    rows = [max((*shape, 0)[0] - first, 2) for shape in shapes]
    entries = []
    for side, place, count in zip(("source", "target"), places, rows, strict=True):
        origins = tuple(first + min(row, count - 1) for row in range(max(rows)))
        table = RowMap(origins, first + count)
        entries.append(Entry(f"{side}_positions.weight", (place,), table))
    return entries, max(rows)


def number_in(
    settings: Mapping[str, Any], name: str, default: int | float, maximum: int = _LARGEST
) -> int | float:
    """Read a number, `default` if absent; raise an error unless it is a number below `maximum`."""
    value = settings.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < maximum:
        raise ExchangeError(
            f"The setting `{name}` of a checkpoint must be a number below {maximum:,}, but got "
            f"{str(value)[:40]!r}; the checkpoint is damaged."
        )
    return value
