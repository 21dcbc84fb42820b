"""Length bucketing."""

from collections.abc import Iterator, Sequence


def by_length(
    lengths: Sequence[int], batch_tokens: int, most_rows: int | None = None
) -> Iterator[list[int]]:
    """
    Group items of similar length into batches of limited size.

    `batch_tokens`: maximum number of tokens in a batch, padding included; a longer item forms its
    own batch.

    The longest items come first, so that a lack of memory shows at once.
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
