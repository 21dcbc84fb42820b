"""
Word alignments of translations and of given pairs, and the replacement of unknown words.

Attention of all pairs is computed in batches of similar length. The weights of a batch are freed
before the next batch.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import groupby
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.alignment.from_attention import Extraction, attention_links, rate_layers
from heedful.alignment.links import GoldLinks, LinkCounts, Links
from heedful.alignment.unknown_words import replace_unknown, split_words
from heedful.alignment.words import CONTINUED, SPACE, Unit, units_of, units_of_words
from heedful.data.length_batches import by_length
from heedful.errors import SettingError, TextError
from heedful.model.encoder_decoder import EncoderDecoder
from heedful.runs.run import Run
from heedful.text.lines import without_controls
from heedful.tokenization.imported_model import BYTE_KINDS
from heedful.tokenization.special_symbols import UNKNOWN_TEXT
from heedful.tokenization.subword_model import SubwordModel
from heedful.tokenization.tokenizer import UNKNOWN, Tokenizer
from heedful.translation.result import TranslationNote, WordAlignment, divergence_error
from heedful.translation.sources import check_source

Ids = Sequence[int]

# How these kinds of tokenizers mark the subwords of a word; all other kinds do so like
# sentencepiece.
_MARKS = {
    **{"word": "", "word-list": "", "imported-spaces": ""},
    **{"codes": CONTINUED, "imported-codes": CONTINUED},
}


class SegmentedText(NamedTuple):
    """
    One side of a pair as words and as subwords.

    Words that were cut from a long line have no subwords.
    """

    ids: Ids
    """Subwords, without special symbols."""
    words: Sequence[str]
    units: list[Unit]
    """Subwords of each word."""

    def without_first(self, words: int) -> "SegmentedText":
        """Drop the first words, which precede the text."""
        units = [
            Unit(unit.pieces, range(unit.words.start - words, unit.words.stop - words))
            for unit in self.units
            if unit.words.start >= words
        ]
        return SegmentedText(self.ids, self.words[words:], units)

    def shifted(self, pieces: int) -> "SegmentedText":
        """Shift subword indices by the number of subwords before the first word."""
        if not pieces:
            return self
        units = [
            Unit(range(unit.pieces.start + pieces, unit.pieces.stop + pieces), unit.words)
            for unit in self.units
        ]
        return self._replace(units=units)

    @property
    def unknown(self) -> list[int]:
        """Indices of the words that have an unknown subword."""
        return [
            unit.words[0]
            for unit in self.units
            if UNKNOWN in (self.ids[piece] for piece in unit.pieces)
        ]


def segment_text(model: SubwordModel, text: str, ids: Ids, pieces: Sequence[str]) -> SegmentedText:
    """Match the words of a text with its subwords. `model`: the side's subword model."""
    mark = _MARKS.get(model.kind, SPACE)
    if model.kind in ("word-list", "imported-spaces"):
        words = text.split()
    else:
        has_spaces = mark == CONTINUED or model.kind in BYTE_KINDS
        spaced = text if has_spaces else text.replace(SPACE, " ")
        words = [word for word in spaced.split(" ") if word]
    if not mark:
        return SegmentedText(ids, words, units_of_words(pieces, words))
    # The model's normalization may put spaces into a word, or drop the word. A tag is a subword of
    # its own even if no space follows it.
    tag = pieces[0] if pieces and pieces[0] in model.tags else ""
    spelled_alone = [words[0].removeprefix(tag), *words[1:]] if tag else words
    of_words = [units_of([*map(model.piece, row)], mark) for row in model.encode(spelled_alone)]
    place = [0] * bool(tag)
    place += [number for number, units in enumerate(of_words) for u in units for _ in u.words]
    units = []
    for spelled, group in groupby(
        units_of(pieces, mark), lambda unit: range(place[unit.words[0]], place[unit.words[-1]] + 1)
    ):
        same = [unit.pieces for unit in group]
        units.append(Unit(range(same[0].start, same[-1].stop), spelled))
    return SegmentedText(ids, words, units)


def segment_source(tokenizer: Tokenizer, text: str, ids: Ids) -> SegmentedText:
    """Match the words of a source line, without the prefix's words, with its subwords."""
    before, pieces = tokenizer.source_prefix, tokenizer.pieces_source(ids)
    leading, trailing = tokenizer.around_source
    pieces = pieces[leading : len(ids) - trailing]
    segmented = segment_text(tokenizer.models[0], before + text, ids, pieces).shifted(leading)
    return segmented.without_first(len(before.split())) if before else segmented


def segment_ids(tokenizer: Tokenizer, ids: Ids) -> SegmentedText:
    """Match the words of a model's translation with its subwords."""
    # In a word vocabulary, an unknown symbol counts as one word, however many words it stands for.
    units = units_of(tokenizer.pieces_target(ids), _MARKS.get(tokenizer.target_kind, SPACE))
    words: list[str] = []
    spelled_units: list[Unit] = []
    for unit in units:
        spelled = tokenizer.decode([ids[piece] for piece in unit.pieces])
        # sentencepiece puts spaces around an unknown symbol inside a word
        spelled = re.sub(f" ?{UNKNOWN_TEXT} ?", UNKNOWN_TEXT, spelled)
        # A control character is a space in the translation, and so is a tab between fields; byte
        # tokens can spell a space, too.
        spaced = without_controls(spelled)[0].replace("\t", " ")
        parts = [part for part in spaced.split(" ") if part]
        if parts:
            spelled_units.append(Unit(unit.pieces, range(len(words), len(words) + len(parts))))
            words += parts
    return SegmentedText(ids, words, spelled_units)


# Maximum number of positions per side that are computed at once, padding included.
_BATCH_TOKENS = 2048


class Aligner:
    """
    Word alignment from the attention of a model or an ensemble.

    This is the part of a `Translator` that handles words. For an ensemble the attention weights of
    each layer and head are averaged, so the members must have equally many layers and heads.
    """

    def __init__(self, run: Run, models: Sequence[EncoderDecoder]) -> None:
        self.run, self.models, self.tokenizer = run, tuple(models), run.tokenizer

    @cached_property
    def can_align(self) -> bool:
        """Whether words can be aligned by attention."""
        try:
            self.extraction("")
        except SettingError:
            return False
        return True

    def extraction(self, text: str, wanted: bool = True) -> Extraction:
        """
        Parse an extraction setting and check it against the model.

        `wanted`: whether alignments are needed; if not, an empty setting is not checked.

        Raises `SettingError` if the model has no such layer or head.
        """
        model = self.run.config.model
        if not wanted and not text:
            return Extraction()
        if model.no_alignment:
            fault = (
                "the decoder of this run has none"
                if model.no_attention
                else "the attention of this run is the same for all source words"
            )
            raise SettingError(
                "word alignments and the replacement of unknown words are computed from attention, "
                f"but {fault} ({model.no_alignment}); name another run."
            )
        parsed = Extraction.parse(text)
        parsed.check(*model.cross_attention)
        if len(self.models) > 1:  # fail before the first line is translated
            for member in self.models:
                self._cross(member, [[UNKNOWN]], [[UNKNOWN]])
        return parsed

    def pair_ids(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        first: int = 1,
        allow_empty: bool = False,
    ) -> tuple[list[list[int]], list[list[int]]]:
        """
        Tokenize given pairs without cutting them.

        `first`: number of the first pair, for messages. `allow_empty`: whether a source may be
        empty even if the model reads no end symbol.

        Raises `TextError` if a side is too long, or if the model cannot read an empty source.
        """
        sources, targets = self._read(sources, targets)
        ids = self.tokenizer.encode_source(sources), self.tokenizer.encode_target(targets)
        limit = self.run.config.search.max_source_length
        for number, sides in enumerate(zip(*ids, strict=True), start=first):
            if not allow_empty:
                check_source(sides[0], self.run.config.model.source_end, f"that of pair {number}")
            if (length := max(map(len, sides))) > limit:
                raise TextError(
                    f"a pair must have at most {limit:,} subwords per side "
                    f"(search.max_source_length), but pair {number} has {length:,}; leave it out."
                )
        return ids

    def cross(
        self, sources: Sequence[Ids], targets: Sequence[Ids]
    ) -> Iterator[tuple[int, Float[np.ndarray, "layers heads target source"]]]:
        """
        Compute the cross-attention of pairs, many at a time.

        `sources, targets`: subwords of the pairs, without special symbols.

        The model makes one pass over known targets, as in training. A batch has at most 2,048
        positions per side, or one pair.
        """
        lengths = [max(len(s), len(t)) + 1 for s, t in zip(sources, targets, strict=True)]
        for rows in by_length(lengths, _BATCH_TOKENS):
            batch = [sources[row] for row in rows], [targets[row] for row in rows]
            weights = torch.stack([self._cross(model, *batch) for model in self.models]).mean(0)
            for place, row in enumerate(rows):
                real = weights[place, :, :, : len(targets[row]) + 1, : len(sources[row])]
                if not real.isfinite().all():
                    raise divergence_error("its attention is not finite")
                yield row, real.float().cpu().numpy()

    @torch.inference_mode()
    def _cross(
        self,
        model: EncoderDecoder,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
    ) -> Float[Tensor, "rows layers heads target source"]:
        """Compute one model's attention; each member of an ensemble has its own start token."""
        batch = self.run.collator(model).batch(sources, targets).to(model.device)
        cross = model.attention(batch.source, batch.target_in).cross
        heads = cross[0].size(1) if cross else 0
        if (len(cross), heads) != self.run.config.model.cross_attention:
            raise SettingError(
                "alignments of an ensemble need members with the same number of decoder layers and "
                "heads, but they differ; align with one run alone."
            )
        return torch.stack(cross, dim=1).float()

    def align(
        self, sources: Sequence[str], targets: Sequence[str], by: Extraction
    ) -> list[WordAlignment]:
        """Align the words of given pairs; a pair with an empty side has no links."""
        pairs = self._match_subwords(sources, targets)
        alignments = [WordAlignment((), (), ())] * len(pairs)
        for number, cross in self._cross_of(pairs):
            source, target = pairs[number]
            links = attention_links(cross, source.units, target.units, by)
            alignments[number] = _alignment(source.words, target.words, links)
        return alignments

    def rate(
        self, sources: Sequence[str], targets: Sequence[str], gold: Sequence[GoldLinks]
    ) -> dict[Extraction, LinkCounts]:
        """Measure how well each layer aligns given pairs."""
        pairs = self._match_subwords(sources, targets)
        for number, (pair, links) in enumerate(zip(pairs, gold, strict=True), start=1):
            words = [len(side.words) for side in pair]
            far = [max((link[side] for link in links.possible), default=-1) for side in (0, 1)]
            if far[0] >= words[0] or far[1] >= words[1]:
                raise TextError(
                    f"gold links must number space-separated words from 0, but pair {number} has "
                    f"{words[0]} and {words[1]} words and links up to {far[0]} and {far[1]}; give "
                    "the text that was annotated."
                )
        return rate_layers(
            (cross, pairs[number][0].units, pairs[number][1].units, gold[number])
            for number, cross in self._cross_of(pairs)
        )

    def note(
        self,
        texts: Sequence[str],
        sources: Sequence[Ids],
        written: Sequence[Sequence[Ids]],
        by: Extraction,
        align: bool = True,
        replace: bool | Mapping[str, str] = False,
        rows: Collection[int] | None = None,
    ) -> list[list[TranslationNote]]:
        """
        Return notes: alignments of translations, and texts in which unknown words are replaced.

        `written`: for each line the subwords of its translations, best first. `align`: whether to
        return the links. `rows`: the lines that get notes; all if None.

        Attention is computed only for translations that need it. An unknown word is replaced with
        the source word that has the most attention, or with that source word's entry in `replace`.
        The threshold of the alignment does not matter.
        """
        dictionary = replace if isinstance(replace, Mapping) else {}
        notes = [[TranslationNote()] * len(several) for several in written]
        places = [
            (row, rank)
            for row, several in enumerate(written)
            if rows is None or row in rows
            for rank, ids in enumerate(several)
            if align or (replace is not False and UNKNOWN in ids)
        ]
        segmented = {
            row: segment_source(self.tokenizer, texts[row], sources[row]) for row, _ in places
        }
        pairs = [
            (segmented[row], segment_ids(self.tokenizer, written[row][rank]))
            for row, rank in places
        ]
        for number, cross in self._cross_of(pairs):
            source, target = pairs[number]
            words, text = target.words, None
            links = attention_links(cross, source.units, target.units, by)
            if replace is not False and target.unknown:
                looked_up = attention_links(cross, source.units, target.units, by.hard)
                words = replace_unknown(words, target.unknown, looked_up, source.words, dictionary)
                words = [without_controls(word)[0] for word in words]
                words, links = split_words(words, links)
                text = " ".join(words)
            row, rank = places[number]
            alignment = _alignment(source.words, words, links) if align else None
            notes[row][rank] = TranslationNote(alignment, text)
        return notes

    def _match_subwords(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> list[tuple[SegmentedText, SegmentedText]]:
        """Tokenize given pairs, and match their words with subwords."""
        sources, targets = self._read(sources, targets)
        source_ids, target_ids = self.pair_ids(sources, targets, allow_empty=True)
        read = map(partial(segment_source, self.tokenizer), sources, source_ids)
        return list(zip(read, map(self._target, targets, target_ids), strict=True))

    def _read(self, sources: Sequence[str], targets: Sequence[str]) -> tuple[list[str], list[str]]:
        """Normalize given pairs as for translation."""
        return self.run.read_sources(sources), self.run.read_targets(targets)

    def _target(self, text: str, ids: Ids) -> SegmentedText:
        """Match words with subwords of a given translation."""
        ahead = len(self.tokenizer.before_target)
        pieces = self.tokenizer.pieces_target(ids)[ahead:]
        return segment_text(self.tokenizer.models[1], text, ids, pieces).shifted(ahead)

    def _cross_of(
        self, pairs: Sequence[tuple[SegmentedText, SegmentedText]]
    ) -> Iterator[tuple[int, Float[np.ndarray, "layers heads target source"]]]:
        """Compute the cross-attention of pairs."""
        return self.cross([source.ids for source, _ in pairs], [target.ids for _, target in pairs])


def _alignment(source: Iterable[str], target: Iterable[str], links: Links) -> WordAlignment:
    """Build an alignment with sorted links."""
    return WordAlignment(tuple(source), tuple(target), tuple(sorted(links)))
