"""Several encoded corpora, read as one."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.encoded import EncodedPairs


@dataclass(frozen=True, eq=False)
class JoinedPairs:  # numpydoc ignore=PR02
    """
    Number the pairs of several corpora through.

    Attributes
    ----------
    parts : tuple of EncodedPairs
        The corpora, in the order in which their rows are numbered.

    Notes
    -----
    Nothing is copied. A single corpus is read the same way, so that training knows one kind.
    """

    parts: tuple[EncodedPairs, ...]

    def __len__(self) -> int:
        """Count the pairs."""
        return int(self._edges[-1])

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Pairs of each corpus."""
        return tuple(map(len, self.parts))

    @cached_property
    def source_lengths(self) -> NDArray[np.int32]:
        """Subwords of each source sentence, shape (pairs,)."""
        return np.concatenate([part.source_lengths for part in self.parts])

    @cached_property
    def target_lengths(self) -> NDArray[np.int32]:
        """Subwords of each target sentence, shape (pairs,)."""
        return np.concatenate([part.target_lengths for part in self.parts])

    def pair(
        self, index: int
    ) -> tuple[NDArray[np.unsignedinteger[Any]], NDArray[np.unsignedinteger[Any]]]:
        """
        Get the ids of both sides of a pair.

        Parameters
        ----------
        index : int
            The pair, counted from 0 over all corpora.

        Returns
        -------
        tuple of ndarray and ndarray
            Source ids and target ids, without special symbols.

        Notes
        -----
        See `EncodedPairs.pair`.
        """
        part = int(np.searchsorted(self._edges, index, side="right")) - 1
        return self.parts[part].pair(index - int(self._edges[part]))

    @cached_property
    def _edges(self) -> NDArray[np.int64]:
        """Where the rows of each corpus begin, and the end."""
        return np.cumsum([0, *self.sizes])
