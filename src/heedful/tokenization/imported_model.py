"""
Subwords of another toolkit, with its vocabulary.

Text is cut as it was there: by a sentencepiece model, by codes of subword-nmt, or at its spaces.
`heedful.tokenization.id_mapping` gives the pieces ids of ours.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import sentencepiece

from heedful.errors import TokenizerError
from heedful.tokenization.bpe_codes import BpeCodes, join_pieces, words_of
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.sentencepiece_model import encode_lines
from heedful.tokenization.special_symbols import (
    SPECIAL_PIECES,
    UNKNOWN,
    UNKNOWN_TEXT,
    is_tag,
    refuse_half_characters,
)
from heedful.tokenization.train import SPACE

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


class ImportedModel:
    """
    Cut text as another toolkit did, and number it.

    Parameters
    ----------
    id_mapping : IdMapping
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

    def __init__(self, id_mapping: IdMapping, cutter: str, content: bytes = b"") -> None:
        self.kind = f"{PREFIX}{cutter}"
        self.id_mapping = id_mapping
        self._cutter, self._content = cutter, content
        named = {piece: n for n, piece in enumerate(id_mapping.pieces) if piece is not None}
        self.tags: Mapping[str, int] = {p: n for p, n in named.items() if is_tag(p)}
        self._ids = {
            p: n for p, n in named.items() if n >= len(SPECIAL_PIECES) and p not in self.tags
        }
        self._processor = _processor(content) if cutter == "sentencepiece" else None
        self._codes = BpeCodes(content) if cutter == "codes" else None

    @property
    def size(self) -> int:
        """Ids there are, special ones included."""
        return len(self.id_mapping.pieces)

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
        `data.subword_sampling` is refused for this kind.
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
            return join_pieces(shown) if self._codes is not None else " ".join(shown)
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
        piece = self.id_mapping.pieces[number]
        return f"<{self.id_mapping.origins[number]}>" if piece is None else piece

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
        cutter = dict.fromkeys(CUTTERS[self._cutter], self._content)
        return {**cutter, "imported.json": self.id_mapping.to_json()}

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
        return cls(IdMapping.from_json(files["imported.json"]), cutter, content)

    def _cut(self, texts: Sequence[str]) -> list[list[str]]:
        """Cut lines into pieces."""
        if self._processor is not None:
            return encode_lines(self._processor, texts, str)
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
