"""
A vocabulary that another toolkit numbered.

Our four special ids come first, so the rows of an imported model are brought into another order;
the original ids are kept, and a model can be given back with them. Text is cut as it was there: by
a sentencepiece model, by codes of subword-nmt, or at its spaces.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

import sentencepiece

from heedful.data.subwords.codes import Codes, joined, words_of
from heedful.data.subwords.learn import SPACE
from heedful.data.subwords.symbols import (
    SPECIAL_IDS,
    SPECIAL_PIECES,
    UNKNOWN,
    UNKNOWN_TEXT,
    is_tag,
    refuse_half_characters,
)
from heedful.errors import TokenizerError

PREFIX = "imported-"
CUTTERS = {"sentencepiece": ("model",), "codes": ("codes",), "spaces": ()}
"""What cuts text, and the endings of the files that it needs."""


def is_imported(kind: str) -> bool:
    """
    Tell whether subwords came from another toolkit.

    Parameters
    ----------
    kind : str
        As a tokenizer says.

    Returns
    -------
    bool
        Whether they have ids there that are other ones than ours.

    Notes
    -----
    Each way to cut text is a kind of its own.
    """
    return kind.startswith(PREFIX)


@dataclass(frozen=True)
class Numbering:
    """
    Relate our ids to those of another toolkit.

    Attributes
    ----------
    pieces : tuple of str or None
        For each of our ids what it stands for, as it is spelled there; None for a row that no text
        stands for.
    origins : tuple of int or None
        For each of our ids the original one; None for a special symbol that they do not have.

    Notes
    -----
    The first four are padding, unknown, start and end.
    """

    pieces: tuple[str | None, ...]
    origins: tuple[int | None, ...]

    @classmethod
    def of(
        cls, numbers: Mapping[str, int], special: Mapping[str, str | None], rows: int
    ) -> "Numbering":
        """
        Give each piece of a vocabulary a new id.

        Parameters
        ----------
        numbers : mapping of str to int
            Their ids by piece.
        special : mapping of str to str or None
            How ``pad``, ``unknown``, ``start`` and ``end`` are spelled there; None or missing for
            one that they do not have.
        rows : int
            Rows of their table; those that no piece stands for are kept too.

        Returns
        -------
        Numbering
            Special symbols first, all others in their order.

        Raises
        ------
        TokenizerError
            If an id is used twice or lies beyond the table, or a special symbol is not there.

        Notes
        -----
        The order of the others stays, so that an export can be compared by eye.
        """
        _check_numbers(numbers, special, rows)
        spelled: dict[int, str] = {number: piece for piece, number in numbers.items()}
        first = [special.get(name) for name in SPECIAL_IDS]
        taken = [None if piece is None else numbers[piece] for piece in first]
        others = [number for number in range(rows) if number not in set(taken)]
        shown = [piece or ours for piece, ours in zip(first, SPECIAL_PIECES, strict=True)]
        return cls(
            (*shown, *(spelled.get(number) for number in others)),
            (*taken, *others),
        )

    @cached_property
    def ours(self) -> dict[int, int]:
        """Our id of each original one."""
        return {their: our for our, their in enumerate(self.origins) if their is not None}

    @property
    def rows(self) -> int:
        """Rows of their table."""
        return len(self.ours)

    def to_ours(self, ids: Sequence[int]) -> list[int]:
        """
        Translate ids of theirs.

        Parameters
        ----------
        ids : sequence of int
            Theirs.

        Returns
        -------
        list of int
            Ours.

        Notes
        -----
        Unknown for one that is beyond their table.
        """
        return [self.ours.get(int(number), UNKNOWN) for number in ids]

    def to_theirs(self, ids: Sequence[int]) -> list[int]:
        """
        Translate ids of ours.

        Parameters
        ----------
        ids : sequence of int
            Ours, none that they do not have.

        Returns
        -------
        list of int
            Theirs.

        Notes
        -----
        The inverse of `to_ours`.
        """
        return [number for i in ids if (number := self.origins[i]) is not None]


class ImportedModel:
    """
    Cut text as another toolkit did, and number it.

    Parameters
    ----------
    numbering : Numbering
        Pieces and ids.
    cutter : {'sentencepiece', 'codes', 'spaces'}
        What cuts text.
    content : bytes, optional
        The sentencepiece model or the codes.

    Raises
    ------
    TokenizerError
        If the sentencepiece model or the codes cannot be read.

    Notes
    -----
    Pieces that look like language tags are tags: no text produces them, nor special symbols.
    """

    def __init__(self, numbering: Numbering, cutter: str, content: bytes = b"") -> None:
        self.kind = f"{PREFIX}{cutter}"
        self.numbering = numbering
        self._cutter, self._content = cutter, content
        named = {piece: n for n, piece in enumerate(numbering.pieces) if piece is not None}
        self.tags: Mapping[str, int] = {p: n for p, n in named.items() if is_tag(p)}
        self._ids = {
            p: n for p, n in named.items() if n >= len(SPECIAL_PIECES) and p not in self.tags
        }
        self._processor = _processor(content) if cutter == "sentencepiece" else None
        self._codes = Codes(content) if cutter == "codes" else None

    @property
    def size(self) -> int:
        """Ids there are, special ones included."""
        return len(self.numbering.pieces)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """
        Turn lines into ids.

        Parameters
        ----------
        texts : sequence of str
            Lines of text.

        Returns
        -------
        list of list of int
            The ids of each line.

        Notes
        -----
        A piece that the vocabulary does not have is unknown.
        """
        refuse_half_characters(texts)
        number = self._ids.get
        return [[number(piece, UNKNOWN) for piece in row] for row in self._cut(texts)]

    def sample(self, texts: Sequence[str], rate: float, generator: Random) -> list[list[int]]:
        """
        Turn lines into ids.

        Parameters
        ----------
        texts : sequence of str
            Lines of text.
        rate : float
            Not used.
        generator : Random
            Not used.

        Returns
        -------
        list of list of int
            What `encode` gives: there is nothing to sample.

        Notes
        -----
        `data.sampling` is refused for this kind.
        """
        del rate, generator
        return self.encode(texts)

    def decode(self, ids: Sequence[int]) -> str:
        """
        Turn ids into text.

        Parameters
        ----------
        ids : sequence of int
            Ids of this model.

        Returns
        -------
        str
            The text, with “⁇” for what is unknown.

        Notes
        -----
        Text that came in tokenised comes out so.
        """
        if self._processor is None:
            shown = [UNKNOWN_TEXT if n == UNKNOWN else self.piece(n) for n in ids]
            return joined(shown) if self._codes is not None else " ".join(shown)
        parts, known = [], list[str]()
        for number in [*ids, None]:
            if number is None or number == UNKNOWN:
                parts.append(str(self._processor.decode_pieces(known)) if known else "")
                known = []
            else:
                known.append(self.piece(number))
        return f" {UNKNOWN_TEXT} ".join(parts).replace(SPACE, " ").strip()

    def piece(self, number: int) -> str:
        """
        Spell one id.

        Parameters
        ----------
        number : int
            An id of this model.

        Returns
        -------
        str
            What it stands for, as it is spelled in the other toolkit.

        Notes
        -----
        A row that no text stands for is shown by its original number.
        """
        piece = self.numbering.pieces[number]
        return f"<{self.numbering.origins[number]}>" if piece is None else piece

    def files(self) -> dict[str, bytes]:
        """
        Give what has to be saved.

        Returns
        -------
        dict of str to bytes
            By the endings of the files.

        Notes
        -----
        Model and codes are kept byte for byte.
        """
        record = {"pieces": self.numbering.pieces, "ids": self.numbering.origins}
        listed = (json.dumps(record, indent=0, ensure_ascii=False) + "\n").encode()
        return {**dict.fromkeys(CUTTERS[self._cutter], self._content), "imported.json": listed}

    @classmethod
    def from_files(cls, kind: str, files: Mapping[str, bytes]) -> "ImportedModel":
        """
        Make a model of its files.

        Parameters
        ----------
        kind : str
            As the model says.
        files : mapping of str to bytes
            As `files` gave them.

        Returns
        -------
        ImportedModel
            The same model.

        Raises
        ------
        TokenizerError
            If they are nothing of this kind.

        Notes
        -----
        Checked to the last entry: the files may come from a stranger.
        """
        cutter = kind.removeprefix(PREFIX)
        content = b"".join(files[ending] for ending in CUTTERS[cutter])
        return cls(_numbering(files["imported.json"]), cutter, content)

    def _cut(self, texts: Sequence[str]) -> list[list[str]]:
        """Cut lines into pieces."""
        if self._processor is not None:
            return self._processor.encode(list(texts), out_type=str, num_threads=1)
        if self._codes is not None:
            cut = self._codes.cut
            return [[p for word in words_of(text) for p in cut(word)] for text in texts]
        return [text.split() for text in texts]


def _processor(content: bytes) -> Any:
    """Load a sentencepiece model, whatever its special ids are."""
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(content)
    except (RuntimeError, OSError) as error:
        raise TokenizerError(
            "An imported tokenizer must have a sentencepiece model, but this one cannot be read; "
            "copy it again."
        ) from error
    return processor


def _check_numbers(
    numbers: Mapping[str, int], special: Mapping[str, str | None], rows: int
) -> None:
    """Refuse a vocabulary that cannot be numbered anew."""
    wrong = [f"{piece!r} has the id {n}" for piece, n in numbers.items() if not 0 <= n < rows]
    twice = len(numbers) - len(set(numbers.values()))
    lacking = [piece for piece in special.values() if piece is not None and piece not in numbers]
    reasons = [f"{', '.join(wrong[:5])}, beyond the table"] * bool(wrong)
    reasons += [f"{twice} ids stand for more than one piece"] * (twice > 0)
    reasons += [f"it lacks {', '.join(map(repr, lacking))}"] * bool(lacking)
    if reasons:
        raise TokenizerError(
            f"A vocabulary must give each piece a row of its own among the {rows:,} of the model's "
            f"table, but this one does not: {'; '.join(reasons)}. It belongs to another model."
        )


def _numbering(content: bytes) -> Numbering:
    """Read and check ``imported.json``."""
    try:
        record = json.loads(content)
        pieces, ids = record["pieces"], record["ids"]
        named = [piece for piece in pieces if piece is not None]
        numbers = [number for number in ids if number is not None]
        "".join(named).encode()  # text, and whole characters
        whole = (
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
    if not whole:
        raise _not_imported("pieces and ids do not belong together")
    return Numbering(tuple(pieces), tuple(ids))


def _not_imported(reason: str) -> TokenizerError:
    """Say what the list of an imported vocabulary must be."""
    return TokenizerError(
        "The vocabulary of an imported tokenizer must be JSON with a list of pieces and a list of "
        f"their original ids, but this one is not ({reason}); copy it again."
    )
