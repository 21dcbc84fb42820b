"""
Training of a subword model.

Sentencepiece does the work. What is added here: text of any size and any line length is read as a
stream, learning is reproducible, and a vocabulary size that the text does not allow is answered
with the size that it does allow.
"""

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import sentencepiece

from heedful.errors import HeedfulError, TextError, TokenizerError
from heedful.machine.processor import can_start_threads
from heedful.text.corpus import read_lines
from heedful.text.file_formats import TextSource
from heedful.tokenization.special_symbols import SPECIAL_IDS, split_tag

Kind = Literal["bpe", "unigram", "character", "word"]
"""Kinds of subword models that can be trained."""

_SENTENCEPIECE_KIND = {"bpe": "bpe", "unigram": "unigram", "character": "char", "word": "word"}
_MOST_LINES = 1_000_000
_BYTE_FALLBACK_FROM = 4_000
_BYTES = 256
# Sentencepiece counts positions inside a word in 16 bits and drops sentences that are too long.
_LONGEST_SLICE = 10_000
# Sentencepiece skips a training line with this character, which it uses itself.
_RESERVED = "\u2585"
SPACE = "\u2581"
"""What sentencepiece writes for a space."""


def learn_subwords(
    files: Sequence[TextSource | Path],
    text: str,
    *,
    kind: Kind,
    vocabulary_size: int,
    seed: int,
    threads: int,
    tagged: int = 0,
) -> bytes:
    """
    Train one subword model.

    `vocabulary_size`: subwords, the special ones included; an upper limit for “character”.

    The dummy prefix (a space added before each line and removed again) makes “dog” the same subword
    at the start of a line and inside it. Together with kept spaces and no normalisation it is
    lossless.

    Raises `TokenizerError` if the text does not allow that vocabulary size, `TextError` if the text
    is empty or cannot be read.
    """
    sentences = _Sentences(files, seed, tagged)
    if not sentences.total:
        raise TextError(
            f"Subwords are learned from text, but the {text} is empty; give files with sentences."
        )
    needed = len(sentences.characters) + len(SPECIAL_IDS) + len(sentences.tags) + 1  # the space
    if kind == "character" and vocabulary_size < needed:
        raise _too_small(text, vocabulary_size, needed)
    if vocabulary_size <= len(SPECIAL_IDS):
        raise TokenizerError(
            f"data.vocabulary_size must be more than {len(SPECIAL_IDS)}, the number of special "
            f"symbols, but {vocabulary_size} came; set some hundreds or more."
        )
    model = io.BytesIO()
    # Refused one of its threads, sentencepiece ends the whole process.
    if not can_start_threads(threads):
        raise HeedfulError(
            f"Subwords are learned with {threads} threads, but the system refuses to start them; "
            "raise its limit on processes (ulimit -u, or pids.max of a container) or on memory "
            "(ulimit -v), or give subwords that were learned elsewhere (--tokenizer)."
        )
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type=_SENTENCEPIECE_KIND[kind],
            vocab_size=vocabulary_size,
            # Left alone it forgets tabs, and characters that it only met in text like “<unk>”.
            required_chars="" if kind == "word" else "".join(sorted(sentences.characters)),
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            add_dummy_prefix=True,
            character_coverage=1.0,
            byte_fallback=_spells_bytes(kind, vocabulary_size),
            pad_id=SPECIAL_IDS["pad"],
            unk_id=SPECIAL_IDS["unknown"],
            bos_id=SPECIAL_IDS["start"],
            eos_id=SPECIAL_IDS["end"],
            control_symbols=sorted(sentences.tags),
            max_sentence_length=8 * _LONGEST_SLICE,
            num_threads=threads,
            minloglevel=2,
        )
    except RuntimeError as error:
        if sentences.error is not None:
            raise sentences.error from None
        raise _size_error(str(error), text, kind, vocabulary_size) from error
    return model.getvalue()


class _Sentences:
    """An iterable of the training text that records statistics and its own failure."""

    def __init__(self, files: Sequence[TextSource | Path], seed: int, tagged: int = 0) -> None:
        self.files = files
        self.seed = seed
        self.tagged = tagged
        self.total = 0
        self.tags: set[str] = set()
        self.characters: set[str] = set()
        self.error: BaseException | None = None
        for line in self._lines():
            self.total += 1
            self.characters.update(line)
        self.characters -= {" ", SPACE, _RESERVED}

    def __iter__(self) -> Iterator[str]:
        try:
            for line in self._sampled():
                for start in range(0, len(line), _LONGEST_SLICE):
                    yield line[start : start + _LONGEST_SLICE].replace(_RESERVED, " ")
        except (Exception, KeyboardInterrupt) as error:
            # Sentencepiece would turn it into a RuntimeError with a traceback in its text.
            self.error = error
            raise

    def _sampled(self) -> Iterator[str]:
        """Read every line, or `_MOST_LINES` of them evenly spread."""
        for number, line in enumerate(self._lines()):
            place = number * _MOST_LINES + self.seed
            if self.total <= _MOST_LINES or place % self.total < _MOST_LINES:
                yield line

    def _lines(self) -> Iterator[str]:
        """Read every line that is not empty, without its language tag."""
        for number, file in enumerate(self.files):
            for line in read_lines(file):
                if number < self.tagged:
                    tag, line = split_tag(line)
                    self.tags.update([tag] if tag else [])
                if line:
                    yield line


def _spells_bytes(kind: str, vocabulary_size: int) -> bool:
    """Decide whether unseen characters are encoded as bytes."""
    return kind in ("bpe", "unigram") and vocabulary_size >= _BYTE_FALLBACK_FROM


def _size_error(reason: str, text: str, kind: str, size: int) -> TokenizerError:
    """Build the error with the allowed vocabulary sizes, taken from SentencePiece's message."""
    # What it says holds with, or without, the bytes that the size asked for brings along.
    if too_small := re.search(r"smaller than required_chars\. \d+ vs (\d+)", reason):
        smallest = int(too_small[1])
        if _spells_bytes(kind, smallest) and not _spells_bytes(kind, size):
            smallest += _BYTES
        return _too_small(text, size, smallest)
    if too_large := re.search(r"set it to a value <= (\d+)", reason):
        largest = int(too_large[1])
        if _spells_bytes(kind, size) and not _spells_bytes(kind, largest):
            largest -= _BYTES
        return TokenizerError(
            f"data.vocabulary_size must be at most {largest} for this text, but {size} came: the "
            f"{text} has no more subwords; set data.vocabulary_size={largest} or give more text."
        )
    return TokenizerError(
        f"Subwords could not be learned from the {text} with data.vocabulary_size={size}; "
        f"sentencepiece says: {' '.join(reason.split())}"
    )


def _too_small(text: str, size: int, smallest: int) -> TokenizerError:
    """Build the error with the smallest vocabulary size that has room for every character."""
    return TokenizerError(
        f"data.vocabulary_size must be at least {smallest} for this text, but {size} came: every "
        f"character of the {text} and the special symbols need a place; set "
        f"data.vocabulary_size={smallest} or more."
    )
