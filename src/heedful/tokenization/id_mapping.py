"""
Mapping between another toolkit's ids and ours.

Our four special ids come first, so the embedding rows of an imported model are reordered. The
original ids are kept for an export.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from heedful.errors import TokenizerError
from heedful.tokenization.special_symbols import SPECIAL_IDS, SPECIAL_PIECES, UNKNOWN


@dataclass(frozen=True)
class IdMapping:
    """
    A mapping between our ids and those of another toolkit.

    Our first four ids are padding, unknown, start and end.
    """

    pieces: tuple[str | None, ...]
    """The other toolkit's token for each of our ids; None for a row without a token."""
    origins: tuple[int | None, ...]
    """The original id of each of our ids; None for a special symbol that the toolkit lacks."""

    @classmethod
    def of(
        cls, numbers: Mapping[str, int], special: Mapping[str, str | None], rows: int
    ) -> "IdMapping":
        """
        Assign our ids to a vocabulary.

        `special`: the toolkit's spelling of ``pad``, ``unknown``, ``start`` and ``end``; None or
        missing for a symbol that the toolkit lacks. A token with our spelling of a missing symbol
        becomes that symbol, because no two tokens may have one spelling.

        The other tokens keep their order, so that an export is easy to compare with the original.

        Raises `TokenizerError` if an id is used twice or has no row in the embedding table, or if
        the vocabulary lacks a spelling in `special`.
        """
        _check_numbers(numbers, special, rows)
        spelled: dict[int, str] = {number: piece for piece, number in numbers.items()}
        free = numbers.keys() - {*special.values()}
        usual = [ours if ours in free else None for ours in SPECIAL_PIECES]
        named = [special.get(name) for name in SPECIAL_IDS]
        first = [ours if piece is None else piece for piece, ours in zip(named, usual, strict=True)]
        taken = [None if piece is None else numbers[piece] for piece in first]
        others = [number for number in range(rows) if number not in set(taken)]
        shown = [piece or ours for piece, ours in zip(first, SPECIAL_PIECES, strict=True)]
        return cls(
            (*shown, *(spelled.get(number) for number in others)),
            (*taken, *others),
        )

    @cached_property
    def theirs(self) -> dict[int, int]:
        """The original id of each of our ids that has one."""
        return {our: their for our, their in enumerate(self.origins) if their is not None}

    @cached_property
    def ours(self) -> dict[int, int]:
        """Our id for each original id."""
        return {their: our for our, their in self.theirs.items()}

    @property
    def vocabulary(self) -> dict[str, int]:
        """The original id of each token, in the order of the ids."""
        tokens = {their: self.pieces[our] for our, their in self.theirs.items()}
        return {token: their for their in sorted(tokens) if (token := tokens[their]) is not None}

    @property
    def rows(self) -> int:
        """Number of rows of the original embedding table."""
        return len(self.ours)

    def to_ours(self, ids: Sequence[int]) -> list[int]:
        """Map original ids to ours; ids beyond the original table become unknown."""
        return [self.ours.get(int(number), UNKNOWN) for number in ids]

    def to_theirs(self, ids: Sequence[int]) -> list[int]:
        """Map our ids to the original ids; drop ids without an original."""
        return [number for i in ids if (number := self.origins[i]) is not None]

    @classmethod
    def from_json(cls, content: bytes) -> "IdMapping":
        """
        Read a mapping from its file.

        Every entry is checked, because the file may be untrusted.

        Raises `TokenizerError` if the file is invalid.
        """
        try:
            record = json.loads(content)
            pieces, ids = record["pieces"], record["ids"]
            named = [piece for piece in pieces if piece is not None]
            numbers = [number for number in ids if number is not None]
            "".join(named).encode()  # fails unless all are strings without lone surrogates
            is_valid = (
                isinstance(pieces, list)
                and isinstance(ids, list)
                and len(pieces) == len(ids) >= len(SPECIAL_PIECES)
                and None not in pieces[: len(SPECIAL_PIECES)]
                and None not in ids[len(SPECIAL_PIECES) :]
                and len(set(named)) == len(named)
                and sorted(numbers) == list(range(len(numbers)))
                and not any(isinstance(number, bool) for number in numbers)
            )
        except (ValueError, RecursionError, KeyError, TypeError) as error:
            raise _not_imported(f"{type(error).__name__}: {error}") from error
        if not is_valid:
            raise _not_imported("pieces and ids do not match")
        return cls(tuple(pieces), tuple(ids))

    def to_json(self) -> bytes:
        """Convert to JSON for ``tokenizer.imported.json`` in a run folder."""
        record = {"pieces": self.pieces, "ids": self.origins}
        return (json.dumps(record, indent=0, ensure_ascii=False) + "\n").encode()


def _check_numbers(
    numbers: Mapping[str, int], special: Mapping[str, str | None], rows: int
) -> None:
    """Refuse a vocabulary that cannot be renumbered."""
    wrong = [f"{piece!r} has the id {n}" for piece, n in numbers.items() if not 0 <= n < rows]
    twice = len(numbers) - len(set(numbers.values()))
    lacking = [piece for piece in special.values() if piece is not None and piece not in numbers]
    reasons = [f"{', '.join(wrong[:5])}, beyond the last row"] * bool(wrong)
    reasons += [f"pieces that have the id of another piece: {twice}"] * (twice > 0)
    reasons += [f"it lacks {', '.join(map(repr, lacking))}"] * bool(lacking)
    if reasons:
        raise TokenizerError(
            f"A vocabulary must give each piece its own row in the model's {rows:,} embeddings, "
            f"but does not: {'; '.join(reasons)}. Use the vocabulary of this model."
        )


def _not_imported(reason: str) -> TokenizerError:
    """Build the error for an invalid file of an imported vocabulary."""
    return TokenizerError(
        "The vocabulary of an imported tokenizer must be JSON with pieces and their original "
        f"ids, but is not ({reason}); copy it again."
    )
