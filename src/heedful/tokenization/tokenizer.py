"""
The tokenizer, which converts text to subword ids and back.

It is one interface for every kind of segmentation: subwords that sentencepiece learned, byte-pair
codes of subword-nmt, lists of words. Language tags before source lines become symbols of their own.
No text can produce a special symbol, not even “</s>”.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from heedful.errors import SettingError, TextError, TokenizerError
from heedful.text.file_formats import TextSource
from heedful.text.language_codes import look_up
from heedful.tokenization.frame import Frame
from heedful.tokenization.imported_model import is_imported
from heedful.tokenization.sentencepiece_model import SentencePieceModel
from heedful.tokenization.serialization import (
    TokenizerFacts,
    fingerprint_of,
    read_models,
    write_models,
)
from heedful.tokenization.special_symbols import END, PAD, START, UNKNOWN, split_tag
from heedful.tokenization.subword_model import SubwordModel, models_of_sides, share_vocabulary
from heedful.tokenization.train import Kind, SubwordOptions, learn_subwords
from heedful.tokenization.vocabulary_model import learn_symbols

__all__ = ["END", "PAD", "SAMPLED_KINDS", "START", "UNKNOWN", "Tokenizer"]

SAMPLED_KINDS = ("bpe", "unigram", "codes")
"""The kinds that can split the same text in several ways."""


class Tokenizer:
    """
    The tokenizer of both sides.

    `target`: the model of target text; None if both sides share `source`. `source_prefix`: text
    before every source line, such as the name of a task. `frame`: tokens around each text, such as
    those of the two languages.

    Without normalization and unknown characters, encoding with trained subwords is lossless, except
    for two characters that SentencePiece reserves. U+2581 (▁) becomes a space, and U+2585 (▅) is
    unknown without byte fallback. Codes and word lists lose the number of spaces between words.
    """

    def __init__(
        self,
        source: SubwordModel,
        target: SubwordModel | None = None,
        *,
        source_language: str,
        target_language: str,
        source_prefix: str = "",
        frame: Frame | None = None,
    ) -> None:
        self.source_prefix, self.frame = source_prefix, frame
        self.kind = source.kind
        self.target_kind = source.kind if target is None else target.kind
        self.source_language = source_language
        self.target_language = target_language
        self._models = [source] if target is None else [source, target]
        self._source, self._target = self._models[0], self._models[-1]
        around = () if frame is None else frame.languages.values()
        self._silent = frozenset((PAD, START, *self._target.tags.values(), *around))
        before, after = ([], []) if frame is None else frame.around_source(source_language)
        self._before_source, self._after_source = before, after
        self.before_target = [] if frame is None else frame.before_target(target_language)

    @classmethod
    def train(
        cls,
        source_files: Sequence[TextSource | Path],
        target_files: Sequence[TextSource | Path],
        *,
        kind: Kind,
        vocabulary_size: int,
        shared: bool,
        symbols: bool = False,
        source_language: str,
        target_language: str,
        seed: int,
        threads: int = 4,
        options: SubwordOptions | None = None,
    ) -> "Tokenizer":
        """
        Train subword models on text.

        `vocabulary_size`: number of subwords of each model, the four special ones included. A
        “character” model has as many as the text needs, up to this limit. `symbols`: whether the
        target is split at spaces, with every symbol in the vocabulary. The same text and arguments
        give the same model files.

        The paper shares one vocabulary of about 37,000 byte-pair subwords between English and
        German (section 5.1). From 4,000 subwords on, the kinds “bpe” and “unigram” encode unseen
        characters as bytes instead of as unknown. Below this size, the 256 bytes would take too
        much of the vocabulary.

        Raises `TokenizerError` if the text does not allow that vocabulary size; the message names
        an allowed size. Raises `TextError` if the text is empty or cannot be read.
        """

        def learn(files: Sequence[TextSource | Path], text: str, tagged: int = 0) -> SubwordModel:
            model = learn_subwords(
                files,
                text,
                kind=kind,
                vocabulary_size=vocabulary_size,
                seed=seed,
                threads=threads,
                tagged=tagged,
                options=options or SubwordOptions(),
            )
            return SentencePieceModel(model, kind)

        languages = source_language, target_language
        models: list[SubwordModel]
        if symbols:
            source = learn(source_files, f"{source_language or 'source'} text", len(source_files))
            models = [source, learn_symbols(target_files)]
        else:
            models = models_of_sides(learn, source_files, target_files, shared, languages)
        return cls(*models, source_language=source_language, target_language=target_language)

    def with_symbols(self, target_files: Sequence[TextSource | Path]) -> "Tokenizer":
        """Return a tokenizer that splits the target at spaces and knows all symbols of a text."""
        return self.changed(self._source, learn_symbols(target_files))

    def changed(self, *models: SubwordModel, **facts: Any) -> "Tokenizer":
        """Return a tokenizer with other models or `TokenizerFacts`; all else stays the same."""
        return Tokenizer(*(models or self._models), **self._facts._replace(**facts)._asdict())

    def between(
        self, source_language: str, target_language: str, options: tuple[str, str]
    ) -> "Tokenizer":
        """
        Return a tokenizer for other languages; an empty name keeps the language.

        `options`: names of the two options, for messages. Raises `SettingError` for languages that
        the model lacks, or for a target language that a tag sets.
        """
        names = []
        for own, name, option in zip(
            (self.source_language, self.target_language),
            (source_language, target_language),
            options,
            strict=True,
        ):
            if name and self.frame is not None and self.frame.languages:
                names.append(self.frame.code(name, option))
            elif name and names and self.tags:
                shown = f"{', '.join(self.tags[:5])}{', ...' if len(self.tags) > 5 else ''}"
                raise SettingError(
                    f"{option} must be left out for a model that reads a tag before each text "
                    f"({shown}), but is {name!r:.40}; begin the text with a tag."
                )
            elif name and look_up(name, [own]) is None:
                raise SettingError(
                    f"{option} must fit the model's single direction, "
                    f"{self.source_language or '?'} to {self.target_language or '?'}, but is "
                    f"{name!r:.40}; leave it out."
                )
            else:
                names.append(own)
        return self.changed(source_language=names[0], target_language=names[1])

    @property
    def _facts(self) -> TokenizerFacts:
        """All properties except the models."""
        languages = self.source_language, self.target_language
        return TokenizerFacts(*languages, self.source_prefix, self.frame)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages with a token, in the model's own codes; often empty."""
        return () if self.frame is None else tuple(self.frame.languages)

    @property
    def start(self) -> int:
        """The start token of decoding: the start symbol, or the token of the target language."""
        if self.frame is None or self.frame.target != "start":
            return START
        return self.frame.token(self.target_language)

    @property
    def around_source(self) -> tuple[int, int]:
        """Number of special tokens before and after each source text."""
        return len(self._before_source), len(self._after_source)

    @property
    def shared(self) -> bool:
        """Whether both sides share one vocabulary."""
        return share_vocabulary(self._models)

    @property
    def models(self) -> tuple[SubwordModel, SubwordModel]:
        """The source model and the target model; the same object if both sides share one model."""
        return self._source, self._target

    @property
    def source_size(self) -> int:
        """Number of subwords on the source side, special ones included."""
        return self._source.size

    @property
    def target_size(self) -> int:
        """Number of subwords on the target side, special ones included."""
        return self._target.size

    @property
    def fingerprint(self) -> str:
        """SHA-256 of models, prefix and frame; identifies the tokenizer that encoded a text."""
        return fingerprint_of(self._models, self.source_prefix, self.frame)

    @property
    def tags(self) -> tuple[str, ...]:
        """Language tags that source lines may begin with, such as “>>de<<”."""
        return tuple(self._source.tags)

    def encode_source(
        self, texts: Sequence[str], sampling: float = 0.0, generator: Random | None = None
    ) -> list[list[int]]:
        """
        Convert source text to ids.

        `sampling`: 0 for deterministic segmentation, else the probability that BPE-dropout omits a
        merge (“bpe”, “codes”) or the alpha of sampling (“unigram”). Returns the ids of each line,
        with the id of its tag and the tokens of `frame`, but without other special symbols; empty
        for a line without text.

        The other special symbols are added when batches are built, so that ids on disk suit every
        model. A tokenizer without tags treats a tag as text. The same generator state gives the
        same ids in every process, which SentencePiece's own sampling (0.2.3) does not guarantee.

        Raises `TextError` if a line contains a lone surrogate, or an unknown language tag although
        this tokenizer knows others. Raises `TokenizerError` if `sampling` is not 0 but this kind
        cannot sample.
        """
        tags, prefix = self._source.tags, self.source_prefix
        if not tags:
            if prefix:  # an empty line stays empty
                texts = [prefix + text if text.strip() else "" for text in texts]
            rows = self._encode(self._source, texts, sampling, generator)
            return [self._frame(row) for row in rows] if self.frame else rows
        parts = [split_tag(text, not is_imported(self.kind)) for text in texts]
        for number, (tag, _) in enumerate(parts, start=1):
            if tag and tag not in tags:
                raise TextError(
                    f"A language tag must be one that the tokenizer knows ({', '.join(tags)}), "
                    f"but text {number} of {len(texts)} begins with another tag: "
                    f"“{texts[number - 1][:60]}”; correct it, or train with text that has it."
                )
        rows = self._encode(self._source, [rest for _, rest in parts], sampling, generator)
        encoded = []
        for (tag, rest), row in zip(parts, rows, strict=True):
            if tag:  # a line with only a tag has nothing to translate
                row = [tags[tag], *row] if row and not rest.isspace() else []
            encoded.append(row)
        return encoded

    def encode_target(
        self, texts: Sequence[str], sampling: float = 0.0, generator: Random | None = None
    ) -> list[list[int]]:
        """Convert target text to ids like `encode_source`, but treat language tags as text."""
        rows = self._encode(self._target, texts, sampling, generator)
        return [[*self.before_target, *row] if row else [] for row in rows]

    def encode_phrases(self, texts: Sequence[str]) -> list[list[int]]:
        """Convert parts of target texts to ids, without the tokens that begin a target."""
        return self._encode(self._target, texts, 0.0, None)

    def decode(self, ids: Iterable[int]) -> str:
        """Convert target ids to text."""
        # An id past the vocabulary is unknown too: a model's output may be padded to a round size.
        # Byte tokens can spell any character, including a line feed.
        known = []
        for number in map(int, ids):
            if number == END:
                break
            if number not in self._silent:
                known.append(number if 0 < number < self.target_size else UNKNOWN)
        return self._target.decode(known)

    def decode_source(self, ids: Iterable[int]) -> str:
        """Convert source ids to text without the prefix; encoding this text may give other ids."""
        numbers = list(ids)
        if self.frame is not None:
            special = {START, END, *self.frame.languages.values()}
            numbers = [number for number in numbers if number not in special]
        if self.source_prefix:
            (before,) = self._source.encode([self.source_prefix.rstrip()])
            numbers = numbers[len(before) :] if numbers[: len(before)] == before else numbers
        return self._source.decode(numbers)

    def pieces_source(self, ids: Iterable[int]) -> list[str]:
        """Return the subwords of source ids, as labels for attention maps and alignments."""
        return _pieces(self._source, ids)

    def pieces_target(self, ids: Iterable[int]) -> list[str]:
        """Return the subwords of target ids, as labels for attention maps and alignments."""
        return _pieces(self._target, ids)

    def save(self, folder: Path) -> None:
        """
        Write the tokenizer into a run folder.

        Each file is written under a temporary name, synced and renamed. ``tokenizer.json`` is
        written last, so if it exists, the models exist, too.

        Raises `StorageError` if a file cannot be written.
        """
        write_models(folder, self._models, self._facts)

    @classmethod
    def load(cls, folder: Path) -> "Tokenizer":
        """
        Read the tokenizer of a run folder.

        File names are never taken from ``tokenizer.json``, which may be untrusted.

        Raises `RunFolderError` if a file is missing, cannot be read, or does not have the recorded
        checksum. Raises `TokenizerError` if ``tokenizer.json`` does not have a supported format, or
        if a model cannot be read.
        """
        models, facts = read_models(folder)
        return cls(*models, **facts._asdict())

    def _frame(self, row: list[int]) -> list[int]:
        """Put the tokens around a source text; an empty line stays empty."""
        return [*self._before_source, *row, *self._after_source] if row else []

    def _encode(
        self, model: SubwordModel, texts: Sequence[str], sampling: float, generator: Random | None
    ) -> list[list[int]]:
        """Convert lines to ids, sampled if requested."""
        if not sampling and self.frame is not None:
            tokens = self._silent  # text must never produce these, whatever its subwords are
            return [[UNKNOWN if n in tokens else n for n in row] for row in model.encode(texts)]
        if not sampling:
            return model.encode(texts)
        if self.kind not in SAMPLED_KINDS:
            raise TokenizerError(
                f"data.subword_sampling needs subwords that can be split further (of kind "
                f"{' or '.join(SAMPLED_KINDS)}), but this tokenizer is of kind {self.kind}; set "
                "data.subword_sampling=0."
            )
        return model.sample(texts, sampling, generator or Random())


def _pieces(model: SubwordModel, ids: Iterable[int]) -> list[str]:
    """Return the text of ids; ids beyond the vocabulary are unknown."""
    size = model.size
    known = [number if 0 <= number < size else UNKNOWN for number in map(int, ids)]
    return [model.piece(number) for number in known]
