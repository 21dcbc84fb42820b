"""What the loop asks of those around it; who they are is not its business."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from heedful.data.micro_batches import MicroBatches, Rows


@runtime_checkable
class Order(Protocol):
    """
    What the loop asks of whoever lays out the batches.

    Attributes
    ----------
    micro_batch_tokens : int
        Padded tokens a side that are computed at once.

    Notes
    -----
    `heedful.data.batching.BatchOrder` is one.
    """

    @property
    def micro_batch_tokens(self) -> int:
        """Padded tokens a side that are computed at once."""

    def epoch(self, number: int) -> Sequence[Rows]:
        """Return the batches of an epoch; asked for once, before its first batch."""

    def cut(self, rows: Rows, ranks: int) -> list[MicroBatches]:
        """Cut a batch into micro-batches; return the list of each rank."""

    def largest(self) -> Rows:
        """
        Find the micro-batch that needs the most memory.

        Returns
        -------
        ndarray of int, shape (rows,)
            Indices of its pairs.

        Notes
        -----
        Tried before the first step.
        """


@runtime_checkable
class Checkpointer(Protocol):
    """
    What the loop asks of whoever keeps checkpoints.

    Notes
    -----
    The loop says when; where and how is not its business.
    """

    def save(self, reason: str) -> None:
        """
        Write a checkpoint of the present state.

        Parameters
        ----------
        reason : {'regular', 'best', 'last'}
            Why it is written.

        Returns
        -------
        None
            Nothing.

        Notes
        -----
        Returns when it is safely on disk.
        """
