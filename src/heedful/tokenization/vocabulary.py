"""A vocabulary file: subwords or words with their ids, for splitting at spaces or by BPE codes."""

import json
from collections.abc import Mapping, Sequence

from heedful.errors import TokenizerError
from heedful.tokenization.special_symbols import SPECIAL_PIECES


class Vocabulary:
    """
    A vocabulary of subwords and their ids.

    The four special symbols come first, then the tags, then the subwords.
    """

    def __init__(
        self, pieces: Sequence[str], tags: Sequence[str] = (), splits_others: bool = False
    ) -> None:
        self.pieces = tuple(pieces)
        self.splits_others = splits_others
        first = len(SPECIAL_PIECES)
        self.tags = {tag: number for number, tag in enumerate(tags, start=first)}
        self._shown = (*SPECIAL_PIECES, *tags, *pieces)
        self.ids = {piece: n for n, piece in enumerate(pieces, start=first + len(tags))}

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[str, int],
        size: int,
        tags: Sequence[str] = (),
        splits_others: bool = False,
    ) -> "Vocabulary":
        """
        Build a vocabulary of the most frequent subwords.

        `size`: maximum number of entries, special symbols and tags included.

        A text with fewer subwords gives a smaller vocabulary.

        Raises `TokenizerError` if there is no room for a subword.
        """
        room = size - len(SPECIAL_PIECES) - len(tags)
        if room < 1:
            raise TokenizerError(
                f"data.vocabulary_size must be at least {size - room + 1} for this text, but got "
                f"{size}: each special symbol, each language tag and at least one subword need an "
                "entry."
            )
        pieces = sorted(counts, key=lambda piece: (-counts[piece], piece))[:room]
        return cls(pieces, tags, splits_others)

    def __len__(self) -> int:
        """Count the entries, special symbols and tags included."""
        return len(self._shown)

    def piece(self, number: int) -> str:
        """Return the subword, tag or special symbol of an id."""
        return self._shown[number]

    def to_bytes(self) -> bytes:
        """Serialize the vocabulary as JSON without ids, which follow from the order."""
        record = {
            "splits_others": self.splits_others,
            "tags": list(self.tags),
            "pieces": self.pieces,
        }
        return (json.dumps(record, indent=0, ensure_ascii=False) + "\n").encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> "Vocabulary":
        """
        Read what `to_bytes` wrote.

        Every entry is checked, because the file may be untrusted.

        Raises `TokenizerError` if the file is invalid.
        """
        try:
            record = json.loads(content)
            names = [record["tags"], record["pieces"]]
            is_valid = isinstance(record["splits_others"], bool)
            for entries in names:
                "".join(entries).encode()  # fails unless all are strings without lone surrogates
                is_valid = (
                    is_valid and isinstance(entries, list) and len(set(entries)) == len(entries)
                )
        except (ValueError, RecursionError, KeyError, TypeError) as error:
            raise _not_a_vocabulary(f"{type(error).__name__}: {error}") from error
        if not is_valid:
            raise _not_a_vocabulary(
                "tags or pieces are not lists of distinct entries, or splits_others is not "
                "true or false"
            )
        return cls(names[1], names[0], record["splits_others"])


def _not_a_vocabulary(reason: str) -> TokenizerError:
    """Build the error for an invalid vocabulary file."""
    return TokenizerError(
        "The vocabulary of a tokenizer must be JSON with a list of tags and a list of different "
        f"pieces, but is not ({reason}); copy it again."
    )
