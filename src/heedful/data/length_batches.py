"""Sentences of similar length go together."""

from collections.abc import Iterator, Sequence


def by_length(
    lengths: Sequence[int], batch_tokens: int, most_rows: int | None = None
) -> Iterator[list[int]]:
    """
    Group items of similar length into batches of limited size.

    Parameters
    ----------
    lengths : sequence of int
        Length of each item.
    batch_tokens : int
        Most places of a batch, padding included; a longer item gets a batch of its own.
    most_rows : int, optional
        Most items of a batch, however short.

    Yields
    ------
    list of int
        Indices, the longest items first; every index once.

    Notes
    -----
    Longest first: if memory does not suffice, that shows at once.
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    batch: list[int] = []
    for index in order:
        widest = max(1, lengths[batch[0]] if batch else lengths[index])
        full = len(batch) == most_rows or (len(batch) + 1) * widest > batch_tokens
        if batch and full:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
