"""
A sentencepiece model: text to ids, ids to text, and other ids for the same text by chance.

Sentencepiece itself encodes and decodes. It does not sample, because in version 0.2.3 no seed makes
its samples come again: the same seed gives other subwords in every process. What it would draw from
is drawn from here, out of a generator that the caller seeds.
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
from heedful.tokenization.special_symbols import (
    END,
    PAD,
    SPECIAL_IDS,
    START,
    UNKNOWN,
    is_tag,
    refuse_half_characters,
)
from heedful.tokenization.train import SPACE, Kind

_WORDS = re.compile(f"{SPACE}?[^{SPACE}]+|{SPACE}")


class SentencePieceModel:
    """
    One sentencepiece model.

    Parameters
    ----------
    content : bytes
        A serialised model.
    kind : {“bpe”, “unigram”, “character”, “word”}
        How text is cut.

    Raises
    ------
    TokenizerError
        If the model cannot be read or has other special ids than this package.

    Notes
    -----
    Its control symbols that look like language tags are language tags: no text produces them.
    """

    def __init__(self, content: bytes, kind: Kind) -> None:
        self.kind: str = kind
        self._content = content
        self._processor = _processor(content)
        self._lattices: dict[float, Lattice] = {}
        numbers = filter(self._processor.is_control, range(END + 1, self.size))
        controls = {self.piece(number): number for number in numbers}
        self.tags: Mapping[str, int] = {tag: controls[tag] for tag in filter(is_tag, controls)}

    @property
    def size(self) -> int:
        """Subwords, special ones included."""
        return int(self._processor.get_piece_size())

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
        Neighbouring unknown characters are one unknown subword.
        """
        try:
            return encode_lines(self._processor, texts, int)
        except TypeError:
            refuse_half_characters(texts)
            raise

    def sample(self, texts: Sequence[str], rate: float, generator: Random) -> list[list[int]]:
        """
        Turn lines into ids that are other ones each time.

        Parameters
        ----------
        texts : sequence of str
            Lines of text.
        rate : float
            Dropout of merges for “bpe”, alpha for “unigram”.
        generator : Random
            Where chance comes from.

        Returns
        -------
        list of list of int
            The ids of each line.

        Raises
        ------
        TokenizerError
            If words of this model cannot be cut one by one.

        Notes
        -----
        Subwords end where words end, so words are cut one by one and what was found out about one
        is kept for the next time it comes.
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
        """
        Turn ids into text.

        Parameters
        ----------
        ids : sequence of int
            Ids of this model.

        Returns
        -------
        str
            The text, with “ ⁇ ” for what is unknown.

        Notes
        -----
        Control symbols leave no trace.
        """
        return str(self._processor.decode(list(ids))) if ids else ""

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
            Its subword; a space is written ▁.

        Notes
        -----
        Special symbols are spelled too, such as ``</s>``.
        """
        return str(self._processor.id_to_piece(number))

    def files(self) -> dict[str, bytes]:
        """
        Give what has to be saved.

        Returns
        -------
        dict of str to bytes
            The model, by the ending of its file.

        Notes
        -----
        Byte for byte what the model was made from.
        """
        return {"model": self._content}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The ids of ordinary subwords: those that text is cut into."""
        model = self._processor
        return {
            self.piece(number): number
            for number in range(self.size)
            if not (model.is_control(number) or model.is_unknown(number) or model.is_byte(number))
        }

    @cached_property
    def _bytes(self) -> list[int]:
        """The ids of the 256 bytes, or none."""
        found = [number for number in range(self.size) if self._processor.is_byte(number)]
        return sorted(found, key=self.piece)

    def _sampler(self, rate: float) -> Callable[[str, Random], Sequence[str]]:
        """Choose how words are cut by chance."""
        if any(SPACE in piece[1:] for piece in self._numbers):
            raise TokenizerError(
                "Subwords can be sampled where each lies within one word, but this sentencepiece "
                "model has some that reach over a space; set data.subword_sampling=0 or train "
                "another one."
            )
        if self.kind == "unigram":
            return self._lattice(rate).sample
        return lambda word, generator: self._merges.sample(word, rate, generator)

    @cached_property
    def _merges(self) -> Merges:
        """Merging of two neighbours that together are a subword, the best scored one first."""
        ranks = {piece: -score for piece, score in self._scores().items()}
        return Merges(lambda first, second: ranks.get(first + second))

    def _lattice(self, alpha: float) -> Lattice:
        """Segmentations under the scores of a unigram model."""
        if alpha not in self._lattices:
            self._lattices = {alpha: Lattice(self._scores(), alpha)}
        return self._lattices[alpha]

    def _scores(self) -> dict[str, float]:
        """Look the scores of ordinary subwords up."""
        numbers = self._numbers.items()
        return {piece: float(self._processor.get_score(number)) for piece, number in numbers}


def encode_lines(processor: Any, texts: Sequence[str], out_type: type) -> list[list[Any]]:
    """Cut lines with sentencepiece, without a thread where the system refuses one."""
    try:
        # One thread: more speed comes from encoding in several processes.
        rows: list[list[Any]] = processor.encode(list(texts), out_type=out_type, num_threads=1)
    except RuntimeError:
        rows = [processor.encode(text, out_type=out_type) for text in texts]
    return rows


def _processor(model: bytes) -> Any:
    """Load a sentencepiece model and check that its special ids are ours."""
    try:
        processor = sentencepiece.SentencePieceProcessor()
        processor.load_from_serialized_proto(model)
    except (RuntimeError, OSError) as error:
        raise TokenizerError(
            "A tokenizer must be a sentencepiece model, but this one cannot be read; train it "
            "again or copy it again."
        ) from error
    ids = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    if ids != tuple(SPECIAL_IDS.values()):
        raise TokenizerError(
            f"The special ids of a tokenizer must be padding {PAD}, unknown {UNKNOWN}, start "
            f"{START} and end {END}, but this sentencepiece model has {ids}; train a new one."
        )
    return processor
