"""
Conversion of raw text to subwords and ids, for `heedful data prepare` and `heedful train`.

This module does not import torch.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from random import Random

from heedful.config.schema import RunConfig
from heedful.data.augment import augment_pairs
from heedful.data.cleaning.filter import PairFilter
from heedful.data.cleaning.rules import TextRules, kept_pairs, read_excluded
from heedful.data.coverage import unknown_warning
from heedful.data.encoded.dataset import EncodedPairs
from heedful.data.encoded.encode import encode_corpus
from heedful.data.overlap.leaks import Leaks
from heedful.machine.memory import give_memory_back
from heedful.machine.processor import usable_cores
from heedful.preparation.corpora_file import CorpusPart
from heedful.preparation.letterless import LetterlessPairs
from heedful.preparation.tokenizer import make_tokenizer
from heedful.preparation.training_data import (
    Preparation,
    Say,
    Sizes,
    UnpreparedText,
    file_records,
    has_subwords,
)
from heedful.runs.folder import RunFolder
from heedful.text.corpus import Change, language_of
from heedful.text.escapes import Unescaping, unescape
from heedful.text.file_formats import TextSource
from heedful.text.reading.characters import read_source_characters
from heedful.tokenization.tokenizer import Tokenizer

_TELL_SECONDS = 10.0


@dataclass(frozen=True)
class RawText(UnpreparedText):
    """Training data from text files."""

    parts: tuple[CorpusPart, ...]
    """One corpus or several."""
    excluded: tuple[TextSource, ...] = ()
    """Texts whose lines training must not see, such as test sets."""

    def configure(self, config: RunConfig) -> RunConfig:
        """Infer unset languages from the files' names."""
        first = self.parts[0].corpus
        source, target = first.source[0], first.target[0]
        return config.with_settings(
            {
                "data.source_language": config.data.source_language or language_of(source),
                "data.target_language": config.data.target_language or language_of(target),
            }
        )

    def fingerprint(self) -> Sizes:
        """List names and sizes of the files."""
        records: Sizes = {"exclude": file_records(self.excluded)}
        for part in self.parts:
            place = f"{part.name}." if part.name else ""
            records[f"{place}source"] = file_records(part.corpus.source)
            records[f"{place}target"] = file_records(part.corpus.target)
            if part.weight is not None:
                records[f"{place}weight"] = [{"weight": part.weight}]
        return records

    def describe(self, config: RunConfig) -> str:
        """Read the text once and describe it."""
        read_excluded(self.excluded)
        with _few_letterless(config) as watch:
            counts = [
                (part.name, sum(1 for _ in watch(part.corpus.pairs()))) for part in self.parts
            ]
        names = ", ".join(f"{name} {count:,}" for name, count in counts if name)
        total = f"{sum(count for _, count in counts):,} pairs"
        skipped = [note for part in self.parts for note in part.corpus.skipped.notes()]
        return "; ".join([f"{total} ({names})" if names else total, *skipped])

    def weights(self) -> list[float] | None:
        """
        Return the relative weights of the corpora; None if the corpora's sizes decide.

        See `heedful.data.mixing.mixing_shares`.
        """
        return [part.weight for part in self.parts if part.weight is not None] or None

    def report(self, pairs: Sequence[EncodedPairs], tokenizer: Tokenizer) -> Iterator[str]:
        """Describe how many pairs were kept and dropped, and which corpora have no tag."""
        if note := self._note_on_tags():
            yield note
        for part, encoded in zip(self.parts, pairs, strict=True):
            name = f"{part.name}: " if part.name else ""
            yield f"{name}{encoded.report.summary()}"
            yield from encoded.report.notes
            if warning := unknown_warning(encoded, tokenizer, part.corpus):
                yield f"warning: {name}{warning}"

    def _note_on_tags(self) -> str:
        """Name the corpora without language tags if others have tags; otherwise return nothing."""
        tags = {part.name: part.corpus.source[0].tag for part in self.parts}
        plain = [name for name, tag in tags.items() if not tag]
        tagged = [f"{name} ({tag})" for name, tag in tags.items() if tag]
        if not plain or not tagged:
            return ""
        return (
            f"note: lines of {', '.join(plain)} have no language tag, but lines of "
            f"{', '.join(tagged)} have one; give every corpus a tag if the target languages "
            "differ"
        )

    def prepare(self, job: Preparation) -> None:
        """
        Train the tokenizer and encode the pairs, unless this is already done.

        The tokenizer is written atomically; encoding resumes where it was interrupted.
        """
        if not has_subwords(job.folder):
            self.learn(job.config, job.say).save(job.folder.path)
        self.encode(job)

    def ids(self, folder: RunFolder) -> list[Path]:
        """Return the folders of a run's ids."""
        return [folder.data / part.name for part in self.parts]

    def learn(self, config: RunConfig, say: Say = lambda text: None) -> Tokenizer:
        """Train the tokenizer."""
        # All text is read first, so that unequal line counts and invalid characters are reported
        # before any work is done.
        sources: list[TextSource] = []
        targets: list[TextSource] = []
        with _few_letterless(config) as watch:
            for part in self._read_parts(config):
                texts = self._vocabulary_text(part, config, watch)
                sources += texts[0]
                targets += texts[1]
        tokenizer = make_tokenizer(config, sources, targets, self.tokenizer, self.keep_target, say)
        give_memory_back()
        return tokenizer

    def _vocabulary_text(
        self, part: CorpusPart, config: RunConfig, watch: Change
    ) -> tuple[Sequence[TextSource], ...]:
        """
        Return both sides of a corpus for the vocabulary, after `data.unescape` and `data.augment`.

        `watch`: a function through which all pairs are read.

        Dropped pairs are excluded only if `data.character_coverage` is below 1.
        """
        corpus = part.corpus
        if config.data.unescape:
            corpus = corpus.changed(Unescaping())
        if config.data.character_coverage < 1:
            mask = kept_pairs(watch(corpus.pairs()), self._rules(config))
        else:  # every pair of the files counts, as in the paper's recipes
            mask = bytearray(1 for _ in watch(corpus.pairs()))
        if config.data.augment:
            corpus = corpus.changed(_augment(config))
        if 1 in mask and (corpus is not part.corpus or 0 in mask):
            return tuple((side,) for side in corpus.sides(mask))
        return corpus.source, corpus.target

    def encode(self, job: Preparation) -> None:
        """
        Encode the pairs with the folder's tokenizer, unless this is already done.

        The result does not depend on the number of processes. With `data.subword_sampling` or
        `data.augment` the text of the pairs is stored next to their ids.
        """
        left = [
            (part, ids)
            for part, ids in zip(self._read_parts(job.config), self.ids(job.folder), strict=True)
            if not ids.exists()
        ]
        if not left:
            return
        data, rules, held_out = job.config.data, self._rules(job.config), job.held_out
        tokenizer = Tokenizer.load(job.folder.path)
        if held_out is not None:
            held_out = held_out.changed(_line_reader(job.config))
        for part, ids in left:
            unescaping = Unescaping()
            encode_corpus(
                part.corpus.changed(unescaping) if data.unescape else part.corpus,
                tokenizer,
                PairFilter(data.max_length, data.max_length_ratio),
                ids,
                rules=rules,
                processes=job.processes or usable_cores(),
                keep_text=bool(data.subword_sampling or data.augment),
                progress=_PairCounter(job.say),
                leaks=None if held_out is None else Leaks(held_out, part.name),
            )
            if unescaping.pairs:
                job.say(f"escapes of Moses' tokenizer were resolved in {unescaping.pairs:,} pairs")

    def _read_parts(self, config: RunConfig) -> list[CorpusPart]:
        """Return the corpora; if `data.reading` is text, characters are normalized when read."""
        if config.data.reading == "exact":
            return list(self.parts)
        return [replace(part, corpus=part.corpus.with_characters_read()) for part in self.parts]

    def _rules(self, config: RunConfig) -> TextRules:
        """Return the rules that pairs of text must pass."""
        data = config.data
        return TextRules(
            data.source_language,
            data.target_language,
            data.min_script_share,
            data.drop_duplicates,
            read_excluded(self.excluded, _line_reader(config)),
            self._is_both_ways(),
        )

    def _is_both_ways(self) -> bool:
        """Tell whether a text is on both sides, as in training on both directions."""
        sides = (
            {(text.path, text.part) for part in self.parts for text in side(part.corpus)}
            for side in (attrgetter("source"), attrgetter("target"))
        )
        return not set.isdisjoint(*sides)


def _line_reader(config: RunConfig) -> Callable[[str], str]:
    """Return a function that changes a held-out line like a line of the training text."""

    def read(line: str) -> str:
        line = line if config.data.reading == "exact" else read_source_characters(line)
        return unescape(line) if config.data.unescape else line

    return read


@contextmanager
def _few_letterless(config: RunConfig) -> Iterator[Change]:
    """Yield a function through which pairs are read; then refuse text that a run would copy."""
    pairs = LetterlessPairs()
    yield pairs.watch
    if config.data.reading == "text":
        pairs.require_few()


def _augment(config: RunConfig) -> Change:
    """Return the change that training makes to pairs; the vocabulary must cover changed text."""
    shares, seed = config.data.augment, config.train.seed
    return lambda pairs: augment_pairs(pairs, shares, Random(seed))


class _PairCounter:
    """A callback that reports the number of pairs read, at most every ten seconds."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._last = time.monotonic()

    def __call__(self, pairs: int) -> None:
        now = time.monotonic()
        if now - self._last >= _TELL_SECONDS:
            self._last = now
            self._say(f"encoding: {pairs:,} pairs read")
