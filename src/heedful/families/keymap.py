"""
Mappings of tensor names between toolkits, declared once and used in both directions.

::

    Entry("encoder.norm.weight", ("final.scale",))             the same numbers
    Entry("…qkv_proj.weight", ("q", "k", "v"), Stacked())     ours stacks theirs
    Entry("embed_source.weight", ("table",), RowMap(origins))  rows in another order

One error reports all tensors that are missing, unexpected or of another shape, with up to 8 names
of each kind. So a map proves that each of our tensors has an origin, and that each of the other
toolkit's tensors is used or ignored.
"""

import fnmatch
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from heedful.errors import ExchangeError

Shape = tuple[int, ...]
_SHOWN = 8
# Output bias of a symbol that the original model lacks: far below every logit, so that it is never
# generated, but finite, so that sums are not NaN.
IMPOSSIBLE = -1e9


@runtime_checkable
class Change(Protocol):
    """A conversion of tensors of another toolkit to one of our tensors, and back."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Compute our tensor from the tensors of the other toolkit."""

    def split(self, tensor: Tensor) -> list[Tensor]:
        """Compute the tensors of the other toolkit from our tensor."""


@dataclass(frozen=True)
class Stacked:
    """Stacking of tensors along the rows, as in our projection to queries, keys and values."""

    sizes: Shape = ()
    """Rows of each part; empty for one part, or for parts of equal size."""
    count: int = 1
    """Number of parts of equal size, if `sizes` is empty."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Stack the tensors of the other toolkit."""
        return torch.cat(list(parts), dim=0) if len(parts) > 1 else parts[0]

    def split(self, tensor: Tensor) -> list[Tensor]:
        """Split our tensor."""
        sizes = list(self.sizes) or [tensor.size(0) // self.count] * self.count
        return list(tensor.split(sizes, dim=0))


@dataclass(frozen=True)
class OneRow:
    """A vector that the other toolkit stores as a matrix of one row."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Return the vector in the matrix."""
        return parts[0].flatten()

    def split(self, tensor: Tensor) -> list[Tensor]:
        """Return the vector as a matrix of one row."""
        return [tensor.unsqueeze(0)]


@dataclass(frozen=True)
class RowMap:
    """
    Reordering of the rows of a table, or of the entries of a bias, into the order of our ids.

    A symbol that the other toolkit lacks must have zero probability, so its output bias is a large
    negative number. In the other direction, rows for which we have no id are zero.
    """

    origins: tuple[int | None, ...]
    """The other toolkit's id for each of our ids; None if it lacks the symbol."""
    count: int
    """Number of rows of the other toolkit's table."""
    filling: float = 0.0
    """Value of rows that the other toolkit lacks."""
    lead: int = 0
    """Number of axes of size one before the rows of the other toolkit's tensor."""

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Put the other toolkit's rows into the order of our ids."""
        theirs = parts[0].flatten(0, self.lead)
        ours = theirs.new_full((len(self.origins), *theirs.shape[1:]), self.filling)
        to, since = self._pairs(theirs.device)
        return ours.index_copy(0, to, theirs.index_select(0, since))

    def split(self, tensor: Tensor) -> list[Tensor]:
        """Put our rows into the order of the other toolkit's ids."""
        theirs = tensor.new_zeros((self.count, *tensor.shape[1:]))
        to, since = self._pairs(tensor.device)
        rows = tensor.index_select(0, to)
        return [theirs.index_copy(0, since, rows).reshape(*[1] * self.lead, *theirs.shape)]

    def _pairs(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """List our rows that have an origin, and their origins."""
        known = [(ours, theirs) for ours, theirs in enumerate(self.origins) if theirs is not None]
        ours, theirs = torch.tensor(known, dtype=torch.long, device=device).reshape(-1, 2).T
        return ours, theirs


SAME = Stacked()


class TensorUse(NamedTuple):
    """Counts of a checkpoint's tensors by their use; a map refuses tensors without a use."""

    filled: int = 0
    """Number of our tensors, each with an origin."""
    copies: int = 0
    """Number of tensors in the file that equal a tied tensor."""
    ignored: int = 0
    """Number of tensors in the file that are not weights, such as computed tables."""

    shared: int = 0
    """Number of tensors in the file that fill several of ours, such as a table we do not tie."""

    def __str__(self) -> str:
        """Format the counts for the report of an import."""
        named = {"copies": self.copies, "without weights": self.ignored, "shared": self.shared}
        more = "; ".join(f"{name}: {count}" for name, count in named.items() if count)
        exceptions = f" ({more})" if more else ""
        return (
            f"all {self.filled} tensors of the run are filled, and each tensor of the original is "
            f"used once{exceptions}"
        )


@dataclass(frozen=True)
class Entry:
    """The origin of one of our tensors; several entries may share a tensor that we do not tie."""

    ours: str
    """Name of our tensor."""
    theirs: tuple[str, ...]
    """Names of the other toolkit's tensors."""
    change: Change = SAME
    """The conversion in both directions."""


@dataclass(frozen=True)
class KeyMap:
    """The mapping of all tensors of one model; the other toolkit's shapes follow from ours."""

    entries: tuple[Entry, ...]
    """One entry for each of our tensors."""
    ignored: tuple[str, ...] = ()
    """Patterns of the other toolkit's tensor names to ignore, such as computed tables."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """The other toolkit's tied tensors that our model lacks, each with the tensor it must equal."""

    def to_ours(
        self, theirs: Mapping[str, Tensor], shapes: Mapping[str, Shape], origin: object
    ) -> dict[str, Tensor]:
        """
        Convert the other toolkit's tensors to our tensors.

        Raises an `ExchangeError` for missing and extra tensors and tensors of a wrong shape, or for
        a tied tensor that differs.
        """
        expected = self._expected_shapes(shapes)
        present = {name: tuple(tensor.shape) for name, tensor in theirs.items()}
        check_tensors(present, expected, origin, (*self.ignored, *self.copies))
        for copy, original in self.copies.items():
            if copy in theirs and not theirs[copy].float().equal(theirs[original].float()):
                raise ExchangeError(
                    f"{copy} of {origin} must be equal to {original}, because the settings tie "
                    "them, but differs; settings and weights belong to different models."
                )
        return {
            entry.ours: entry.change.join([theirs[name].float() for name in entry.theirs])
            .clone()
            .contiguous()
            for entry in self.entries
        }

    def to_theirs(self, ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Convert our tensors to the other toolkit's; for a shared tensor, use its first entry."""
        theirs: dict[str, Tensor] = {}
        for entry in self.entries:
            parts = entry.change.split(ours[entry.ours].detach().float())
            for name, part in zip(entry.theirs, parts, strict=True):
                theirs.setdefault(name, part.clone().contiguous())
        return theirs

    def use_of(self, theirs: Iterable[str]) -> TensorUse:
        """Count how the tensors of a checkpoint are used."""
        uses = Counter(name for entry in self.entries for name in entry.theirs)
        left = [name for name in theirs if name not in uses]
        copies = sum(name in self.copies for name in left)
        shared = sum(count > 1 for count in uses.values())
        return TensorUse(len(self.entries), copies, len(left) - copies, shared)

    def _expected_shapes(self, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
        """Compute the shapes of the other toolkit's tensors."""
        unmapped = set(shapes) ^ {entry.ours for entry in self.entries}
        if unmapped:
            raise ValueError(f"the map and the model differ in {sorted(unmapped)}")
        expected: dict[str, Shape] = {}
        for entry in self.entries:
            parts = entry.change.split(torch.empty(shapes[entry.ours], device="meta"))
            expected |= {
                name: tuple(part.shape) for name, part in zip(entry.theirs, parts, strict=True)
            }
        return expected


def tied_copies(tables: Mapping[str, str], shapes: Mapping[str, Shape]) -> dict[str, str]:
    """
    Map tied tables that exist only in the other toolkit's file to the tables they must equal.

    `tables`: maps our names of tables to the other toolkit's names, in the order source, target,
    output.
    """
    copies, original = {}, ""
    for ours, theirs in tables.items():
        if ours in shapes:
            original = theirs
        else:
            copies[theirs] = original
    return copies


def check_tensors(
    present: Mapping[str, Shape],
    expected: Mapping[str, Shape],
    origin: object,
    ignored: Iterable[str] = (),
) -> None:
    """Compare names and shapes; raise one `ExchangeError` for all differences."""
    patterns = tuple(ignored)
    extra = [
        name
        for name in present
        if name not in expected and not any(fnmatch.fnmatchcase(name, p) for p in patterns)
    ]
    wrong = [
        f"{name} is {present[name]} instead of {shape}"
        for name, shape in expected.items()
        if name in present and present[name] != shape
    ]
    problems = [
        f"{label} {_format_names(names)}"
        for label, names in (
            ("missing:", sorted(expected.keys() - present.keys())),
            ("not expected:", sorted(extra)),
            ("of the wrong shape:", wrong),
        )
        if names
    ]
    if problems:
        raise ExchangeError(
            f"the tensors of {origin} must match the settings, but do not; {'; '.join(problems)}. "
            "The files belong to different models, or to another kind of model."
        )


def _format_names(names: Sequence[str]) -> str:
    """Format the first few names."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
