"""Encoding of source lines, with warnings about unknown or truncated text."""

from collections.abc import Callable, Sequence

from heedful.data.coverage import input_warnings
from heedful.errors import TextError
from heedful.tokenization.tokenizer import Tokenizer


def source_ids(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    limit: int,
    warn: Callable[[str], None] | None,
    lines: Sequence[int] = (),
    setting: str = "search.max_source_length",
) -> list[list[int]]:
    """
    Encode lines and truncate lines that are too long; a blank line has no ids.

    `lines`: numbers of the lines, for messages; counted from 1 if empty.
    """
    numbers = lines or range(1, len(texts) + 1)
    ids = tokenizer.encode_source([text if text.strip() else "" for text in texts])
    if warn is not None:
        for warning in input_warnings(texts, ids, tokenizer, lines=numbers):
            warn(warning)
    for number, row in zip(numbers, ids, strict=True):
        if len(row) > limit:
            if warn is not None:
                warn(
                    f"line {number} has {len(row):,} subwords and was cut to the first "
                    f"{limit:,} ({setting})."
                )
            trailing = tokenizer.around_source[1]  # tokens that end each source
            del row[max(limit - trailing, 0) : len(row) - trailing]
    return ids


def check_source(ids: Sequence[int], source_end: bool, which: str) -> None:
    """Refuse an empty source if the model reads no end symbol after it (`source_end`)."""
    if not ids and not source_end:
        raise TextError(
            "a source must not be empty for this model, which reads no end symbol after it, but "
            f"{which} is empty; leave it out."
        )


def check_ids(source: Sequence[int], target: Sequence[int], sizes: tuple[int, int]) -> None:
    """Refuse ids that are not in the source or target vocabulary."""
    for name, ids, size in zip(("source", "target"), (source, target), sizes, strict=True):
        if not all(0 <= number < size for number in ids):
            raise TextError(
                f"`{name}` must hold ids from 0 to {size - 1:,}, but an id is outside this range."
            )
