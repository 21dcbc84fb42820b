"""
An imported SentencePiece or BPE model with its toolkit's vocabulary.

Text is segmented as in that toolkit: by a sentencepiece model, by codes of subword-nmt, by
byte-level BPE, or at spaces. `heedful.tokenization.id_mapping` maps the pieces to our ids.
"""

import re
from collections.abc import Mapping, Sequence
from random import Random

from heedful.tokenization.bpe_codes import BpeCodes, join_pieces
from heedful.tokenization.byte_level import SPACE_SYMBOL, ByteLevelBpe, from_symbols
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.sentencepiece_model import encode_lines, load_processor
from heedful.tokenization.special_symbols import (
    SPECIAL_PIECES,
    UNKNOWN,
    UNKNOWN_TEXT,
    is_tag,
    refuse_half_characters,
)
from heedful.tokenization.train import SPACE

PREFIX = "imported-"
CUTTERS = {
    "sentencepiece": ("model",),
    "codes": ("codes",),
    "bytes": ("merges",),
    "spaced-bytes": ("merges",),
    "spaces": (),
}
"""Each kind of segmentation with the suffixes of its files."""
BYTE_KINDS = (f"{PREFIX}bytes", f"{PREFIX}spaced-bytes")
"""Kinds of byte-level subwords, which can encode any character."""
_SENTINEL = re.compile(r"<extra_id_\d+>")


def is_imported(kind: str) -> bool:
    """Whether a tokenizer of this kind was imported from another toolkit."""
    return kind.startswith(PREFIX)


class ImportedModel:
    """
    The tokenizer of an imported model.

    Pieces that look like language tags are tags: no text produces them, and no text produces
    special symbols. T5's sentinels, such as “<extra_id_0>”, are not in its sentencepiece model;
    they may occur anywhere in a text.

    Raises `TokenizerError` if the sentencepiece model or the codes cannot be read.
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
        self._processor = load_processor(content) if cutter == "sentencepiece" else None
        sentinels = "|".join(filter(_SENTINEL.fullmatch, self._ids))
        self._sentinels = re.compile(sentinels) if sentinels else None
        self._codes = BpeCodes(content) if cutter == "codes" else None
        self._bytes: ByteLevelBpe | None = None
        if cutter.endswith("bytes"):
            self._bytes = ByteLevelBpe(content, named.keys(), cutter == "spaced-bytes")

    @property
    def size(self) -> int:
        """Number of ids, special ones included."""
        return len(self.id_mapping.pieces)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Convert lines to ids; a piece missing from the vocabulary is unknown."""
        refuse_half_characters(texts)
        number = self._ids.get
        return [[number(piece, UNKNOWN) for piece in row] for row in self._cut(texts)]

    def sample(self, texts: Sequence[str], rate: float, generator: Random) -> list[list[int]]:
        """Convert lines to ids like `encode`: an imported model does not sample."""
        del rate, generator
        return self.encode(texts)

    def decode(self, ids: Sequence[int]) -> str:
        """Convert ids to text. Pre-tokenized text stays tokenized."""
        if self._bytes is not None:
            shown = [f" {UNKNOWN_TEXT} " if n == UNKNOWN else self._name(n) for n in ids]
            return from_symbols("".join(shown)).strip()
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
        """Return the text of one id; ▁ stands for a space."""
        name = self._name(number)
        return name if self._bytes is None else name.replace(SPACE_SYMBOL, SPACE)

    def _name(self, number: int) -> str:
        """Return a token in its toolkit's spelling, or the original id of a row without a token."""
        piece = self.id_mapping.pieces[number]
        return f"<{self.id_mapping.origins[number]}>" if piece is None else piece

    def files(self) -> dict[str, bytes]:
        """Return the files to save; model and codes are kept byte for byte."""
        cutter = dict.fromkeys(CUTTERS[self._cutter], self._content)
        return {**cutter, "imported.json": self.id_mapping.to_json()}

    @classmethod
    def from_files(cls, kind: str, files: Mapping[str, bytes]) -> "ImportedModel":
        """
        Load from files.

        Every entry is checked, because the files may be untrusted.

        Raises `TokenizerError` if the files are invalid.
        """
        cutter = kind.removeprefix(PREFIX)
        content = b"".join(files[ending] for ending in CUTTERS[cutter])
        return cls(IdMapping.from_json(files["imported.json"]), cutter, content)

    def _cut(self, texts: Sequence[str]) -> list[list[str]]:
        """Split lines into pieces."""
        if self._processor is not None and self._sentinels is not None:
            return [self._cut_around(self._sentinels, text) for text in texts]
        if self._processor is not None:
            return encode_lines(self._processor, texts, str)
        if self._codes is not None:
            return [self._codes.pieces(text) for text in texts]
        if self._bytes is not None:
            return [self._bytes.cut(text) for text in texts]
        return [text.split() for text in texts]

    def _cut_around(self, sentinels: re.Pattern[str], text: str) -> list[str]:
        """Split the text before, between and after sentinels."""
        between = encode_lines(self._processor, sentinels.split(text), str)
        row = between[0]
        for sentinel, part in zip(sentinels.findall(text), between[1:], strict=True):
            row += [sentinel, *part]
        return row
