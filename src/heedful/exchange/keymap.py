"""
Which tensor of another toolkit is which of ours, declared once and read in both directions.

::

    Entry("encoder.norm.weight", ("final.scale",))             the same numbers
    Entry("…qkv_proj.weight", ("q", "k", "v"), Stacked())     ours is theirs, one below the other
    Entry("…linear1.weight", ("kernel",), TRANSPOSED)            rows are columns there
    Entry("embed_source.weight", ("table",), Rows(origins))    rows in another order

What is missing, not expected or of another shape is reported together, by their names.
"""

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from heedful.errors import ExchangeError

Shape = tuple[int, ...]
_SHOWN = 8


@runtime_checkable
class Change(Protocol):
    """
    Turn some tensors of theirs into one of ours, and back.

    Notes
    -----
    `split` also runs on tensors without content, which is how the shapes of theirs are known.
    """

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """
        Make ours.

        Parameters
        ----------
        parts : sequence of Tensor
            Theirs, in the order of the entry.

        Returns
        -------
        Tensor
            Ours.

        Notes
        -----
        The inverse of `split`.
        """
        ...

    def split(self, whole: Tensor) -> list[Tensor]:
        """
        Make theirs.

        Parameters
        ----------
        whole : Tensor
            Ours.

        Returns
        -------
        list of Tensor
            Theirs, in the order of the entry.

        Notes
        -----
        The inverse of `join`.
        """
        ...


@dataclass(frozen=True)
class Stacked:
    """
    Lay tensors below each other; a single one stays as it is.

    Attributes
    ----------
    sizes : tuple of int, default ()
        Rows of each part; empty for one part, or for parts of equal size.
    count : int, default 1
        Parts, where `sizes` does not say.

    Notes
    -----
    Our attention has one product for queries, keys and values.
    """

    sizes: Shape = ()
    count: int = 1

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """
        Make ours.

        Parameters
        ----------
        parts : sequence of Tensor
            Theirs.

        Returns
        -------
        Tensor
            Ours.

        Notes
        -----
        The first part is on top.
        """
        return torch.cat(list(parts), dim=0) if len(parts) > 1 else parts[0]

    def split(self, whole: Tensor) -> list[Tensor]:
        """
        Make theirs.

        Parameters
        ----------
        whole : Tensor
            Ours.

        Returns
        -------
        list of Tensor
            Theirs.

        Notes
        -----
        Views into `whole`.
        """
        sizes = list(self.sizes) or [whole.size(0) // self.count] * self.count
        return list(whole.split(sizes, dim=0))


@dataclass(frozen=True)
class Transposed:
    """
    Exchange rows and columns.

    Notes
    -----
    Products of other toolkits are often written the other way round.
    """

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """
        Make ours.

        Parameters
        ----------
        parts : sequence of Tensor
            One matrix.

        Returns
        -------
        Tensor
            Ours.

        Notes
        -----
        A view.
        """
        return parts[0].t()

    def split(self, whole: Tensor) -> list[Tensor]:
        """
        Make theirs.

        Parameters
        ----------
        whole : Tensor
            Ours.

        Returns
        -------
        list of Tensor
            One matrix.

        Notes
        -----
        A view.
        """
        return [whole.t()]


@dataclass(frozen=True)
class RowMap:
    """
    Put the rows of a table, or the entries of a bias, into the order of our ids.

    Attributes
    ----------
    origins : tuple of int or None
        For each of our ids theirs, None where they have no such symbol.
    count : int
        Rows of theirs.
    filling : float, default 0.0
        What stands in rows that they do not have.
    lead : int, default 0
        Axes of size one that theirs has before the rows.

    Notes
    -----
    A symbol that they do not have must get no probability: the filling of an output bias is far
    below zero. Their rows that no id of ours stands for are zero on the way back.
    """

    origins: tuple[int | None, ...]
    count: int
    filling: float = 0.0
    lead: int = 0

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """
        Make ours.

        Parameters
        ----------
        parts : sequence of Tensor
            One table.

        Returns
        -------
        Tensor
            Ours.

        Notes
        -----
        Exact: rows are copied.
        """
        theirs = parts[0].flatten(0, self.lead)
        ours = theirs.new_full((len(self.origins), *theirs.shape[1:]), self.filling)
        to, since = self._pairs(theirs.device)
        return ours.index_copy(0, to, theirs.index_select(0, since))

    def split(self, whole: Tensor) -> list[Tensor]:
        """
        Make theirs.

        Parameters
        ----------
        whole : Tensor
            Our table, which may have rows that only fill it up.

        Returns
        -------
        list of Tensor
            One table.

        Notes
        -----
        Exact: rows are copied.
        """
        theirs = whole.new_zeros((self.count, *whole.shape[1:]))
        to, since = self._pairs(whole.device)
        rows = whole.index_select(0, to)
        return [theirs.index_copy(0, since, rows).reshape(*[1] * self.lead, *theirs.shape)]

    def _pairs(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """List our rows that have an origin, and their origins."""
        known = [(ours, theirs) for ours, theirs in enumerate(self.origins) if theirs is not None]
        ours, theirs = torch.tensor(known, dtype=torch.long, device=device).reshape(-1, 2).T
        return ours, theirs


SAME = Stacked()
TRANSPOSED = Transposed()


@dataclass(frozen=True)
class Entry:
    """
    Say where one tensor of ours comes from.

    Attributes
    ----------
    ours : str
        Its name.
    theirs : tuple of str
        Names there.
    change : Change
        From theirs to ours and back.

    Notes
    -----
    Several entries may name the same tensor of theirs: what is tied there and is not here.
    """

    ours: str
    theirs: tuple[str, ...]
    change: Change = SAME


@dataclass(frozen=True)
class KeyMap:
    """
    Map all tensors of one model.

    Attributes
    ----------
    entries : tuple of Entry
        One for each tensor of ours.
    ignored : tuple of str, default ()
        Patterns of names of theirs that carry nothing, such as tables that are computed.

    Notes
    -----
    Shapes of theirs follow from the shapes of ours.
    """

    entries: tuple[Entry, ...]
    ignored: tuple[str, ...] = ()

    def to_ours(
        self, theirs: Mapping[str, Tensor], shapes: Mapping[str, Shape], origin: object
    ) -> dict[str, Tensor]:
        """
        Take tensors over.

        Parameters
        ----------
        theirs : mapping of str to Tensor
            By their names.
        shapes : mapping of str to tuple of int
            What the model needs, by our names.
        origin : object
            Where they come from, for the message.

        Returns
        -------
        dict of str to Tensor
            By our names, in fp32.

        Notes
        -----
        Raises `ExchangeError` that names all missing, extra and misshapen tensors together.
        """
        expected = self._expected(shapes)
        check_tensors(
            {name: tuple(tensor.shape) for name, tensor in theirs.items()},
            expected,
            origin,
            self.ignored,
        )
        return {
            entry.ours: entry.change.join([theirs[name].float() for name in entry.theirs])
            .clone()
            .contiguous()
            for entry in self.entries
        }

    def to_theirs(self, ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """
        Give tensors away.

        Parameters
        ----------
        ours : mapping of str to Tensor
            By our names.

        Returns
        -------
        dict of str to Tensor
            By their names, each a tensor of its own.

        Notes
        -----
        Where several entries name one tensor of theirs, the first one counts.
        """
        theirs: dict[str, Tensor] = {}
        for entry in self.entries:
            parts = entry.change.split(ours[entry.ours].detach().float())
            for name, part in zip(entry.theirs, parts, strict=True):
                theirs.setdefault(name, part.clone().contiguous())
        return theirs

    def _expected(self, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
        """Compute the shapes of theirs."""
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


def check_tensors(
    present: Mapping[str, Shape],
    expected: Mapping[str, Shape],
    origin: object,
    ignored: Iterable[str] = (),
) -> None:
    """
    Compare names and shapes.

    Parameters
    ----------
    present : mapping of str to tuple of int
        Shapes of what is there.
    expected : mapping of str to tuple of int
        Shapes of what is needed.
    origin : object
        Where it was found, for the message.
    ignored : iterable of str, optional
        Patterns of names that may be there.

    Returns
    -------
    None
        Nothing.

    Notes
    -----
    Raises `ExchangeError` that names everything that is wrong.
    """
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
        f"{label} {_listed(names)}"
        for label, names in (
            ("missing:", sorted(expected.keys() - present.keys())),
            ("not expected:", sorted(extra)),
            ("of another shape:", wrong),
        )
        if names
    ]
    if problems:
        raise ExchangeError(
            f"the tensors of {origin} must be those of the model that its settings describe, but "
            f"are not; {'; '.join(problems)}. The files belong to different models, or to another "
            "kind of model."
        )


def _listed(names: Sequence[str]) -> str:
    """Write the first few names."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
