"""A list of subwords or words, numbered: for text that is cut by rules instead of by a model."""

import json
from collections.abc import Mapping, Sequence

from heedful.errors import TokenizerError
from heedful.tokenization.special_symbols import SPECIAL_PIECES


class Vocabulary:
    """
    Subwords and their ids.

    Parameters
    ----------
    pieces : sequence of str
        The subwords, the most frequent one first.
    tags : sequence of str, optional
        Language tags.
    splits_others : bool, default False
        Whether a subword that is not in the list is to be split further.

    Attributes
    ----------
    ids : dict of str to int
        The id of each subword. Special symbols and tags are not found here: no text can produce
        them.
    tags : dict of str to int
        The id of each tag.

    Notes
    -----
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
        Keep what is frequent.

        Parameters
        ----------
        counts : mapping of str to int
            How often each subword occurs.
        size : int
            The most entries, special symbols and tags included.
        tags : sequence of str, optional
            Language tags.
        splits_others : bool, default False
            Whether a subword that is not in the list is to be split further.

        Returns
        -------
        Vocabulary
            The most frequent subwords; of equally frequent ones those that sort first.

        Raises
        ------
        TokenizerError
            If there is no room for a single one.

        Notes
        -----
        A text with fewer subwords gives a smaller vocabulary.
        """
        room = size - len(SPECIAL_PIECES) - len(tags)
        if room < 1:
            raise TokenizerError(
                f"data.vocabulary_size must be at least {size - room + 1} for this text, but "
                f"{size} came: the special symbols and language tags need a place each, and so "
                "does what the text is cut into."
            )
        pieces = sorted(counts, key=lambda piece: (-counts[piece], piece))[:room]
        return cls(pieces, tags, splits_others)

    def __len__(self) -> int:
        """Count the entries, special symbols and tags included."""
        return len(self._shown)

    def piece(self, number: int) -> str:
        """
        Spell an id.

        Parameters
        ----------
        number : int
            An id.

        Returns
        -------
        str
            The subword, tag or special symbol.

        Notes
        -----
        The inverse of `ids` and `tags`.
        """
        return self._shown[number]

    def to_bytes(self) -> bytes:
        """
        Write the list as JSON.

        Returns
        -------
        bytes
            The content of ``tokenizer.vocabulary.json``, one entry a line.

        Notes
        -----
        The ids are not written: they follow from the order.
        """
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

        Parameters
        ----------
        content : bytes
            JSON.

        Returns
        -------
        Vocabulary
            The same vocabulary.

        Raises
        ------
        TokenizerError
            If it is not such a list.

        Notes
        -----
        Checked to the last entry: the file may come from a stranger.
        """
        try:
            record = json.loads(content)
            names = [record["tags"], record["pieces"]]
            whole = isinstance(record["splits_others"], bool)
            for entries in names:
                "".join(entries).encode()  # text, and whole characters
                whole = whole and isinstance(entries, list) and len(set(entries)) == len(entries)
        except (ValueError, RecursionError, KeyError, TypeError) as error:
            raise _not_a_vocabulary(f"{type(error).__name__}: {error}") from error
        if not whole:
            raise _not_a_vocabulary("an entry is there twice, or is no list")
        return cls(names[1], names[0], record["splits_others"])


def _not_a_vocabulary(reason: str) -> TokenizerError:
    """Say what a vocabulary file must be."""
    return TokenizerError(
        "The vocabulary of a tokenizer must be JSON with a list of tags and a list of pieces, each "
        f"there once, but this one is not ({reason}); copy it again."
    )
