"""
A SentencePiece model, which encodes, decodes and samples.

Sentencepiece itself encodes and decodes. It is not used for sampling, because samples of version
0.2.3 are not reproducible: the same seed gives different subwords in every process. So samples are
drawn here from the same distribution, with a generator that the caller seeds.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from random import Random
from typing import Any

import sentencepiece

from heedful.errors import TokenizerError
from heedful.tokenization.bpe import Merges
from heedful.tokenization.lattice import Lattice
from heedful.tokenization.model_proto import FLAGS
from heedful.tokenization.special_symbols import (
    END,
    PAD,
    SPECIAL_IDS,
    START,
    UNKNOWN,
    is_tag,
    refuse_half_characters,
)
from heedful.tokenization.train import SPACE

_WORDS = re.compile(f"{SPACE}?[^{SPACE}]+|{SPACE}")


class SentencePieceModel:
    """
    One SentencePiece model.

    Control symbols that look like language tags are treated as tags: no text produces them.

    Raises `TokenizerError` if the model cannot be read or its special ids differ from heedful's.
    """

    def __init__(self, content: bytes, kind: str) -> None:
        self.kind: str = kind
        self._content = content
        self._processor = _processor(content)
        self._lattices: dict[float, Lattice] = {}
        numbers = filter(self._processor.is_control, range(END + 1, self.size))
        controls = {self.piece(number): number for number in numbers}
        self.tags: Mapping[str, int] = {tag: controls[tag] for tag in filter(is_tag, controls)}

    @property
    def size(self) -> int:
        """Number of subwords, special ones included."""
        return int(self._processor.get_piece_size())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Convert lines to ids; consecutive unknown characters are one unknown subword."""
        try:
            return encode_lines(self._processor, texts, int)
        except TypeError:
            refuse_half_characters(texts)
            raise

    def sample(self, texts: Sequence[str], rate: float, generator: Random) -> list[list[int]]:
        """
        Convert lines to ids with random segmentations.

        Subwords end at word ends, so words are split one by one, and each word's lattice is cached.

        Raises `TokenizerError` if this model cannot split words one by one.
        """
        refuse_half_characters(texts)
        cut = self._sampler(rate)
        lines = []
        for text in self._processor.normalize(list(texts)):
            ids: list[int] = []
            for word in _WORDS.findall(text):
                for piece in cut(word, generator):
                    number = self._numbers.get(piece)
                    if number is not None:
                        ids.append(number)
                    elif self._bytes:
                        ids += [self._bytes[byte] for byte in piece.encode()]
                    elif ids[-1:] != [UNKNOWN]:
                        ids.append(UNKNOWN)
            lines.append(ids)
        return lines

    def decode(self, ids: Sequence[int]) -> str:
        """Convert ids to text; control symbols are dropped."""
        return str(self._processor.decode(list(ids))) if ids else ""

    def piece(self, number: int) -> str:
        """Return the text of one id, including special symbols such as ``</s>``."""
        return str(self._processor.id_to_piece(number))

    def files(self) -> dict[str, bytes]:
        """Return the files to save, byte for byte as they were loaded."""
        return {"model": self._content}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """Ids of ordinary subwords, into which text is split."""
        model = self._processor
        return {
            self.piece(number): number
            for number in range(self.size)
            if not (model.is_control(number) or model.is_unknown(number) or model.is_byte(number))
        }

    @cached_property
    def _bytes(self) -> list[int]:
        """Ids of the 256 byte tokens; empty if there are none."""
        numbers = [number for number in range(self.size) if self._processor.is_byte(number)]
        return sorted(numbers, key=self.piece)

    def _sampler(self, rate: float) -> Callable[[str, Random], Sequence[str]]:
        """Choose the sampling method for the model's type."""
        if any(SPACE in piece[1:] for piece in self._numbers):
            raise TokenizerError(
                "Subword sampling needs subwords within words, but some subwords of this "
                "sentencepiece model cross a space; set data.subword_sampling=0 or train another "
                "model."
            )
        if self.kind == "unigram":
            return self._lattice(rate).sample
        return lambda word, generator: self._merges.sample(word, rate, generator)

    @cached_property
    def _merges(self) -> Merges:
        """BPE merges: pairs of neighbors that form a subword, the best score first."""
        ranks = {piece: -score for piece, score in self._scores().items()}
        return Merges(lambda first, second: ranks.get(first + second))

    def _lattice(self, alpha: float) -> Lattice:
        """Return the lattice of unigram segmentations for `alpha`; the last one is cached."""
        if alpha not in self._lattices:
            self._lattices = {alpha: Lattice(self._scores(), alpha)}
        return self._lattices[alpha]

    def _scores(self) -> dict[str, float]:
        """Return the scores of ordinary subwords."""
        numbers = self._numbers.items()
        return {piece: float(self._processor.get_score(number)) for piece, number in numbers}


def encode_lines(processor: Any, texts: Sequence[str], out_type: type) -> list[list[Any]]:
    """Encode lines with SentencePiece, one by one if the system refuses to start a thread."""
    try:
        # A single thread, because text is encoded in several processes for speed.
        rows: list[list[Any]] = processor.encode(list(texts), out_type=out_type, num_threads=1)
    except RuntimeError:
        rows = [processor.encode(text, out_type=out_type) for text in texts]
    return rows


def load_processor(model: bytes) -> Any:
    """
    Load a SentencePiece model and read all of its subwords.

    Raises `TokenizerError` if the bytes are not a model, or if a subword or the text for unknown
    subwords is not UTF-8.
    """
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.load_from_serialized_proto(model)
        processor.id_to_piece(list(range(processor.get_piece_size())))
        processor.decode([processor.unk_id()])
    except (RuntimeError, OSError, UnicodeDecodeError) as error:
        raise TokenizerError(
            "A tokenizer must be a sentencepiece model in UTF-8, but this one cannot be read; "
            "train it again or copy it again."
        ) from error
    return processor


def _processor(model: bytes) -> Any:
    """Load a SentencePiece model and check that its special ids are ours."""
    processor = load_processor(model)
    ids = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    if ids != tuple(SPECIAL_IDS.values()):
        raise TokenizerError(
            f"The special ids of a tokenizer must be padding {PAD}, unknown {UNKNOWN}, start "
            f"{START} and end {END}, but this sentencepiece model has {ids}; train it with {FLAGS}."
        )
    return processor
