"""
Extension of subword models; old ids are kept.

New subwords come after the old subwords. In a byte-pair model they are merged last. In a unigram
model, a subword merged from two others replaces only this pair: its score, a log-probability, is
slightly above the sum of their scores. The scores prefer merged subwords that were learned earlier,
because programs break ties differently.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from heedful.errors import TokenizerError
from heedful.tokenization.extension.merges import (
    NewPiece,
    learn_characters,
    learn_pieces,
    learn_words,
    words_in,
)
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import PREFIX, ImportedModel
from heedful.tokenization.model_proto import AddedPiece, kind_of, with_pieces
from heedful.tokenization.sentencepiece_model import (
    SentencePieceModel,
    encode_lines,
    load_processor,
)
from heedful.tokenization.subword_model import SubwordModel
from heedful.tokenization.train import SPACE

# Larger than rounding errors: scores are float32 numbers with absolute values of a few tens.
_PREFERENCE = 2e-3
_BATCH = 10_000
_SENTINEL = "<extra_id_0>"
_INSTEAD = (
    "Fine-tune with train --finetune-from RUN --reset tokenizer instead, which keeps the "
    "embeddings of subwords that are in both vocabularies."
)
# A model of words returns consecutive unknown words as one piece.
_WORD = re.compile(f"{SPACE}?[^{SPACE}]+")
_BYTE = re.compile("<0x([0-9A-F]{2})>")


@dataclass(frozen=True)
class ExtensibleModel:
    """A sentencepiece model that can be extended; raises `TokenizerError` for other models."""

    model: SubwordModel

    def __post_init__(self) -> None:
        """Refuse models that cannot be extended."""
        model = self.model
        imported = isinstance(model, ImportedModel) and model.kind == f"{PREFIX}sentencepiece"
        if not (imported or isinstance(model, SentencePieceModel)):
            raise TokenizerError(
                "Only a sentencepiece vocabulary can be extended, but this one is of kind "
                f"{model.kind}. {_INSTEAD}"
            )
        if _SENTINEL in self.ids:
            raise TokenizerError(
                "Only a vocabulary with free ids at its end can be extended, but this vocabulary "
                f"of T5 ends with {_SENTINEL} and similar symbols. {_INSTEAD}"
            )

    @cached_property
    def kind(self) -> str:
        """Kind of the sentencepiece model: bpe, unigram, character or word."""
        return kind_of(self._content)

    @cached_property
    def ids(self) -> dict[str, int]:
        """The ids of all entries, special symbols and tags included."""
        return {self.model.piece(number): number for number in range(self.model.size)}

    @cached_property
    def ordinary(self) -> frozenset[str]:
        """The subwords into which text is split, without byte tokens."""
        processor = self._processor
        return frozenset(
            processor.id_to_piece(number)
            for number in range(processor.get_piece_size())
            if not (
                processor.is_control(number)
                or processor.is_unknown(number)
                or processor.is_byte(number)
            )
        )

    def learn(self, lines: Iterable[str], unchanged: Iterable[str], count: int) -> list[NewPiece]:
        """Learn at most `count` subwords from lines; `unchanged` lines are split as before."""
        words, old = words_in(self._cut(lines)), words_in(self._cut(unchanged))
        if self.kind == "word":
            return learn_words(words, old, self.ordinary, count)
        if self.kind == "character":
            seen = {symbol for word in old for symbol in word}
            return learn_characters(words, seen, self.ordinary, count, self._split)
        return learn_pieces(words, old, self.ordinary, count, self._split)

    def extended(self, own: Sequence[NewPiece], listed: Sequence[str]) -> SubwordModel:
        """
        Return the model with new subwords.

        `own`: new subwords into which the model splits text. `listed`: all new entries that get an
        id, in this order; includes tags, and the subwords of both sides if the vocabulary is
        shared.
        """
        scores = self._scores(own)
        pieces = {new.piece: AddedPiece(new.piece, scores[new.piece]) for new in own}
        if isinstance(self.model, ImportedModel):
            content = with_pieces(self._content, list(pieces.values()))
            return ImportedModel(_longer(self.model.id_mapping, listed), "sentencepiece", content)
        added = [pieces.get(name, AddedPiece(name, 0.0, control=True)) for name in listed]
        return SentencePieceModel(with_pieces(self._content, added), self.model.kind)

    def changed_by(self, longer: SubwordModel, lines: Iterable[str]) -> Iterator[list[int]]:
        """Yield the new ids of each line that the extended model `longer` splits differently."""
        for batch in _batches(lines):
            for old, new in zip(self.model.encode(batch), longer.encode(batch), strict=True):
                if old != new:
                    yield new

    def old_ids(self, new: NewPiece) -> list[int]:
        """Return the old ids of a new subword's parts; empty if no part was known."""
        return [self.ids[part] for part in new.parts if part in self.ids]

    @cached_property
    def _content(self) -> bytes:
        """The content of the model's file."""
        return self.model.files()["model"]

    @cached_property
    def _processor(self) -> Any:
        """The sentencepiece processor of this model."""
        return load_processor(self._content)

    def _cut(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """Cut lines into subwords and single unknown characters."""
        for batch in _batches(lines):
            for row in encode_lines(self._processor, batch, str):
                yield list(self._symbols(row))

    def _symbols(self, row: Sequence[str]) -> Iterator[str]:
        """Split unknown text into characters, and join bytes into characters."""
        waiting = b""
        for piece in row:
            byte = _BYTE.fullmatch(piece) if piece not in self.ordinary else None
            if byte is not None:
                waiting += bytes.fromhex(byte[1])
                continue
            yield from waiting.decode("utf-8", "replace")
            waiting = b""
            if piece in self.ordinary:
                yield piece
            else:
                yield from _WORD.findall(piece) if self.kind == "word" else piece
        yield from waiting.decode("utf-8", "replace")

    def _split(self, letter: str) -> tuple[str, ...]:
        """Return the byte tokens that spell an unknown character; empty if the model has none."""
        spelled = tuple(f"<0x{byte:02X}>" for byte in letter.encode())
        return spelled if all(byte in self.ids for byte in spelled) else ()

    def _scores(self, pieces: Sequence[NewPiece]) -> dict[str, float]:
        """Score new subwords: below all old ones, or by their halves in a unigram model."""
        processor = self._processor
        numbers = {piece: processor.piece_to_id(piece) for piece in self.ordinary}
        scores = {piece: float(processor.get_score(n)) for piece, n in numbers.items()}
        lowest = min(scores.values(), default=0.0)
        for rank, new in enumerate(pieces, start=1):
            if self.kind != "unigram":
                scores[new.piece] = lowest - rank
            elif new.halves is None:
                scores[new.piece] = lowest
            else:
                # with square roots, sums of preferences are hardly ever equal
                preference = _PREFERENCE * (1 + math.sqrt(len(pieces) - rank))
                scores[new.piece] = sum(scores[half] for half in new.halves) + preference
        return scores


def without(pieces: Sequence[NewPiece], dropped: set[str]) -> list[NewPiece]:
    """Drop subwords, and the subwords that are merged from them."""
    rest = []
    for new in pieces:
        if new.piece in dropped or (new.halves and dropped.intersection(new.halves)):
            dropped = dropped | {new.piece}
        else:
            rest.append(new)
    return rest


def _longer(mapping: IdMapping, pieces: Sequence[str]) -> IdMapping:
    """Append entries to our ids and to the other toolkit's ids."""
    rows = mapping.rows
    return IdMapping(
        (*mapping.pieces, *pieces), (*mapping.origins, *range(rows, rows + len(pieces)))
    )


def _batches(lines: Iterable[str]) -> Iterator[list[str]]:
    """Group the lines of a stream."""
    rest = iter(lines)
    while batch := list(islice(rest, _BATCH)):
        yield batch
