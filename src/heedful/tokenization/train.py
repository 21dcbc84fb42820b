"""
Training of a subword model.

Sentencepiece does the work. Text of any size and line length is read as a stream, and learning is
reproducible. With a `character_coverage` below 1, characters that occur in few lines are left out
(`heedful.tokenization.characters`). If the text does not allow a vocabulary size, the error names
an allowed size, or the largest possible size is used.
"""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import sentencepiece

from heedful.errors import HeedfulError, TextError, TokenizerError
from heedful.machine.processor import can_start_threads
from heedful.text.corpus import read_lines
from heedful.text.file_formats import TextSource
from heedful.tokenization.characters import (
    CharacterLines,
    Losses,
    coverage_for,
    lines_to_lose,
    show_characters,
)
from heedful.tokenization.normalization import IDENTITY, normalizer, training_options
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
# A longer word breaks a model of words: sentencepiece cuts it inside a character.
_LONG_WORD = re.compile(r"[^ ]{1001,}")
# One line in this many may lose characters if they would not all fit in the vocabulary.
_SHARE_AT_WORST = 100
# If a larger share of lines has rare characters, these belong to another language and are not
# noise.
_MOST_LOST = 0.05
SPACE = "\u2581"
"""The character with which sentencepiece represents a space."""
_NOT_COUNTED = {" ", SPACE, _RESERVED}


@dataclass(frozen=True)
class SubwordOptions:
    """Options of subword training, apart from the kind and the number of subwords."""

    character_coverage: float = 1.0
    """Fraction of lines whose characters should all be in the vocabulary."""
    normalization: str = IDENTITY
    """Normalization of text before it is split (`heedful.tokenization.normalization`)."""
    at_most: bool = False
    """Whether the vocabulary may be smaller if the text has too few subwords."""
    say: Callable[[str], object] = lambda text: None
    """Called with a message about each change to the requested vocabulary."""


_EXACTLY = SubwordOptions()


def learn_subwords(
    files: Sequence[TextSource | Path],
    text: str,
    *,
    kind: Kind,
    vocabulary_size: int,
    seed: int,
    threads: int,
    tagged: int = 0,
    options: SubwordOptions = _EXACTLY,
) -> bytes:
    """
    Train one subword model.

    `vocabulary_size`: number of subwords, the special ones included; an upper limit for
    “character”.

    The dummy prefix, a space before each line, makes “dog” the same subword at the start of a line
    and inside it. Spaces are preserved, so encoding is lossless if nothing is normalized and no
    character is unknown.

    Raises `TokenizerError` if the text does not allow that vocabulary size, `TextError` if the text
    is empty or cannot be read.
    """
    sentences = _Sentences(
        files, seed, tagged, options.character_coverage < 1, normalizer(options.normalization)
    )
    if not sentences.total:
        raise TextError(
            f"Subwords are learned from text, but the {text} is empty; give files with sentences."
        )
    if vocabulary_size <= len(SPECIAL_IDS):
        raise TokenizerError(
            f"data.vocabulary_size must be more than {len(SPECIAL_IDS)}, the number of special "
            f"symbols, but got {vocabulary_size}; set a few hundred or more."
        )
    # Subwords of several characters need room, too.
    room = vocabulary_size // 2 if kind in ("bpe", "unigram") else vocabulary_size
    if sentences.leave_out_rare(room, vocabulary_size, options.character_coverage):
        fate = "written as bytes" if _spells_bytes(kind, vocabulary_size) else "unknown"
        options.say(sentences.describe_rare(fate, options.character_coverage))
    if kind == "character" and vocabulary_size < sentences.needed:
        raise _too_small(sentences, text, vocabulary_size, sentences.needed)
    # If the system refuses a thread, sentencepiece ends the whole process.
    if not can_start_threads(threads):
        raise HeedfulError(
            f"Subwords are learned with {threads} threads, but the system refuses to start them; "
            "raise its limit on processes (ulimit -u, pids.max) or memory (ulimit -v), or name a "
            "tokenizer (--tokenizer)."
        )
    sentences.words = kind == "word"
    learn = partial(_learn, sentences, kind, options.normalization, threads)
    try:
        return learn(vocabulary_size)
    except RuntimeError as error:
        if sentences.error is not None:
            raise sentences.error from None
        reason = str(error)
        largest = _largest(reason, kind, vocabulary_size)
        if largest is None or not options.at_most:
            raise _size_error(sentences, reason, text, kind, vocabulary_size) from error
    options.say(
        f"vocabulary: {largest:,} subwords instead of {vocabulary_size:,} "
        f"(data.vocabulary_size), because the {text} has no more subwords"
    )
    return learn(largest)


def _learn(
    sentences: "_Sentences", kind: Kind, normalization: str, threads: int, vocabulary_size: int
) -> bytes:
    """Train with sentencepiece; raises `RuntimeError` if the text does not allow the size."""
    model = io.BytesIO()
    with training_options(normalization) as rule:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type=_SENTENCEPIECE_KIND[kind],
            vocab_size=vocabulary_size,
            # Without this, sentencepiece drops tabs, and characters that only occur in text like
            # “<unk>”.
            required_chars="" if kind == "word" else "".join(sorted(sentences.characters)),
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
            **rule,
        )
    return model.getvalue()


class _Sentences:
    """
    An iterable over the training text that records statistics and any reading error.

    `counted`: whether the first pass over the text counts the lines that contain each character.
    `normalize`: normalizes lines as the model does; None for no change.
    """

    def __init__(
        self,
        files: Sequence[TextSource | Path],
        seed: int,
        tagged: int = 0,
        counted: bool = False,
        normalize: Callable[[str], str] | None = None,
    ) -> None:
        self.files = files
        self.seed = seed
        self.tagged = tagged
        self.total = 0
        self.tags: set[str] = set()
        self.characters: set[str] = set()
        self.error: BaseException | None = None
        self._normalize = normalize
        self.words = False  # whether a model of words is learned
        self._counts = CharacterLines()
        self._rare: Losses | None = None
        self._left_out: re.Pattern[str] | None = None
        for line in self._lines():
            self.total += 1
            self.characters.update(line)
            if counted:
                self._counts.add(line)
        self.characters -= _NOT_COUNTED

    @property
    def needed(self) -> int:
        """Number of entries for all characters, special symbols, tags and the space."""
        return len(self.characters) + len(SPECIAL_IDS) + len(self.tags) + 1

    def leave_out_rare(self, room: int, size: int, coverage: float) -> int:
        """
        Drop the characters that occur in the fewest lines; return their number.

        `room`: maximum number of entries that characters should take. `size`: total number of
        entries.
        """
        most = lines_to_lose(coverage, self.total)
        crowded = coverage < 1 and self.needed > room
        # A few lines with unknown characters are better than no vocabulary.
        at_worst = max(1, self.total // _SHARE_AT_WORST if self.needed > size else 0)
        rare = self._counts.rarest(max(most, at_worst) if crowded else most)
        rare = [character for character in rare if character in self.characters]
        losses = Losses.of(rare, self._lines() if rare else ())
        if crowded:
            excess = [self.needed - room, self.needed - size]
            costs = [losses.cost(number) for number in excess if 0 < number <= len(rare)]
            most = max(most, next((lines for lines in costs if lines <= at_worst), 1))
        number = losses.within(most)
        if number:
            self._rare = Losses(rare[:number], losses.lines[:number])
            self.characters.difference_update(rare[:number])
            self._left_out = re.compile(f"[{re.escape(''.join(rare[:number]))}]+")
        return number

    def describe_rare(self, fate: str, coverage: float) -> str:
        """Report which characters were left out. `fate`: how these characters are encoded."""
        rare = self._rare
        assert rare is not None
        number, lines = len(rare.characters), rare.cost(len(rare.characters))
        return (
            f"vocabulary: {number:,} {'character is' if number == 1 else 'characters are'} left "
            f"out, because only {lines:,} of {self.total:,} lines hold "
            f"{'it' if number == 1 else 'them'} (data.character_coverage={coverage:g}); "
            f"{'it is' if number == 1 else 'they are'} {fate}: {self._examples(rare.characters)}"
        )

    def advice(self, places: int) -> str:
        """Suggest a coverage that saves `places` entries; empty if it affects too many lines."""
        if not self._counts.total:
            self._counts = CharacterLines(self._lines())
        rarest = [c for c in self._counts.rarest(self.total) if c in self.characters]
        losses = Losses.of(rarest, self._lines())
        lines = losses.cost(min(places, len(rarest)))
        if lines > max(1, _MOST_LOST * self.total):
            return ""
        number = losses.within(lines)
        return (
            f"; or set data.character_coverage={coverage_for(lines, self.total):g} to leave out "
            f"the rarest characters ({number:,}, found in only {lines:,} of {self.total:,} lines): "
            f"{self._examples(rarest[:number])}"
        )

    def __iter__(self) -> Iterator[str]:
        try:
            for line in self._sample():
                for start in range(0, len(line), _LONGEST_SLICE):
                    yield line[start : start + _LONGEST_SLICE].replace(_RESERVED, " ")
        except (Exception, KeyboardInterrupt) as error:
            # Sentencepiece would turn the error into a RuntimeError with a traceback in its text.
            self.error = error
            raise

    def _sample(self) -> Iterator[str]:
        """Read every line, or `_MOST_LINES` evenly spaced lines of a longer text."""
        for number, line in enumerate(self._lines()):
            place = number * _MOST_LINES + self.seed
            if self.total <= _MOST_LINES or place % self.total < _MOST_LINES:
                if self._left_out is not None:
                    line = self._left_out.sub(" ", line).strip()
                if self.words:
                    line = _LONG_WORD.sub("", line)
                if line:
                    yield line

    def _lines(self) -> Iterator[str]:
        """Read every line that is not empty, without its language tag."""
        return (line for _, _, line in self._located_lines())

    def _located_lines(self) -> Iterator[tuple[str, int, str]]:
        """Read every line that is not empty, with its file and line number."""
        for place, file in enumerate(self.files):
            name = str(file)
            for number, line in enumerate(read_lines(file), start=1):
                if place < self.tagged:
                    tag, line = split_tag(line)
                    self.tags.update([tag] if tag else [])
                if self._normalize is not None:
                    line = self._normalize(line)
                if line:
                    yield name, number, line

    def _examples(self, characters: Sequence[str]) -> str:
        """Name the lines in which the most characters occur for the first time, with examples."""
        costly = self._counts.costliest(characters)
        places = {}
        wanted = {number for number, _ in costly}
        for number, (file, line, _) in enumerate(self._located_lines(), start=1):
            if number in wanted:
                places[number] = f"line {line:,} of {file}"
                if len(places) == len(wanted):
                    break
        return ", ".join(f"{places[number]} ({show_characters(rare)})" for number, rare in costly)


def _spells_bytes(kind: str, vocabulary_size: int) -> bool:
    """Decide whether unseen characters are encoded as bytes."""
    return kind in ("bpe", "unigram") and vocabulary_size >= _BYTE_FALLBACK_FROM


def _largest(reason: str, kind: str, size: int) -> int | None:
    """Find in SentencePiece's message the largest size that works; None if it names none."""
    too_large = re.search(r"set it to a value <= (\d+)", reason)
    if too_large is None:
        return None
    largest = int(too_large[1])
    # The number in the message includes the byte tokens that `size` implies.
    bytes_less = _spells_bytes(kind, size) and not _spells_bytes(kind, largest)
    return largest - _BYTES * bytes_less


def _size_error(
    sentences: _Sentences, reason: str, text: str, kind: str, size: int
) -> TokenizerError:
    """Build the error with the allowed vocabulary sizes, taken from SentencePiece's message."""
    # The number in the message includes byte tokens only if `size` implies them.
    if too_small := re.search(r"smaller than required_chars\. \d+ vs (\d+)", reason):
        smallest = int(too_small[1])
        if _spells_bytes(kind, smallest) and not _spells_bytes(kind, size):
            smallest += _BYTES
        return _too_small(sentences, text, size, smallest)
    if largest := _largest(reason, kind, size):
        return TokenizerError(
            f"data.vocabulary_size must be at most {largest} for this text, but got {size}: the "
            f"{text} has no more subwords; set data.vocabulary_size={largest} or give more text."
        )
    return TokenizerError(
        f"Subwords could not be learned from the {text} with data.vocabulary_size={size}; "
        f"sentencepiece says: {' '.join(reason.split())}"
    )


def _too_small(sentences: _Sentences, text: str, size: int, smallest: int) -> TokenizerError:
    """Build the error with the smallest vocabulary size that has room for every character."""
    return TokenizerError(
        f"data.vocabulary_size must be at least {smallest} for this text, but got {size}: each "
        f"character of the {text} and each special symbol needs an entry; set "
        f"data.vocabulary_size={smallest} or more{sentences.advice(smallest - size)}."
    )
