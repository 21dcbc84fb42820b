"""
Word alignments of translations and of given pairs, and unknown words replaced with their help.

All pairs that ask for attention are computed in batches of similar length; the weights of a batch
are gone before the next one is begun.

The words of a sentence, matched with the subwords that a model has of it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from heedful.model.transformer import Transformer
from heedful.runs.run import Run
from heedful.tokenization.tokenizer import UNKNOWN, Tokenizer
from heedful.translation.result import TranslationNote, WordAlignment

Ids = Sequence[int]

# How each kind of tokenizer marks the subwords of a word; all others as sentencepiece does.
_MARKS = {"word": "", "word-list": "", "codes": CONTINUED}


class SegmentedText(NamedTuple):
    """
    Hold one side of a pair as words and as subwords.

    Attributes
    ----------
    ids : sequence of int
        Subwords, without special symbols.
    words : sequence of str
        Words.
    units : list of Unit
        Which subwords spell which words.

    Notes
    -----
    What was cut off a line that is too long has words but no subwords.
    """

    ids: Ids
    words: Sequence[str]
    units: list[Unit]

    @property
    def unknown(self) -> list[int]:
        """Numbers of the words that have an unknown subword."""
        return [
            unit.words[0]
            for unit in self.units
            if UNKNOWN in (self.ids[piece] for piece in unit.pieces)
        ]


def segment_text(tokenizer: Tokenizer, text: str, ids: Ids, pieces: Sequence[str]) -> SegmentedText:
    """
    Find the words of a text that is given.

    Parameters
    ----------
    tokenizer : Tokenizer
        Made the subwords.
    text : str
        A line.
    ids : sequence of int
        Its subwords, perhaps not to the end.
    pieces : sequence of str
        How they are spelt.

    Returns
    -------
    SegmentedText
        All words of the line.

    Notes
    -----
    Words are what the tokenizer takes for words: what spaces set apart, nearly always.
    """
    kind: str = tokenizer.kind
    mark = _MARKS.get(kind, SPACE)
    if kind == "word-list":
        words = text.split()
    else:
        spaced = text if mark == CONTINUED else text.replace(SPACE, " ")
        words = [word for word in spaced.split(" ") if word]
    units = units_of(pieces, mark) if mark else units_of_words(pieces, words)
    return SegmentedText(ids, words, units)


def segment_ids(tokenizer: Tokenizer, ids: Ids) -> SegmentedText:
    """
    Find the words of a translation that a model wrote.

    Parameters
    ----------
    tokenizer : Tokenizer
        Of the model.
    ids : sequence of int
        Target subwords, without special symbols.

    Returns
    -------
    SegmentedText
        Its words; what is unknown is “⁇”.

    Notes
    -----
    An unknown symbol is one word in a vocabulary of words, however many it stands for.
    """
    units = units_of(tokenizer.pieces_target(ids), _MARKS.get(tokenizer.kind, SPACE))
    spelt = (tokenizer.decode([ids[piece] for piece in unit.pieces]) for unit in units)
    return SegmentedText(ids, [word.replace(" ", "") for word in spelt], units)


# Places of either side that are computed together, padding included.
_BATCH_TOKENS = 2048


class Aligner:
    """
    Read alignments off the attention of one model, or of an ensemble.

    Parameters
    ----------
    run : Run
        Settings and tokenizer.
    models : sequence of Transformer
        In evaluation mode, on their device.

    Notes
    -----
    The part of a `Translator` that knows about words. Of an ensemble it looks at the mean of the
    weights, layer by layer and head by head, so the members must have as many of both.
    """

    def __init__(self, run: Run, models: Sequence[Transformer]) -> None:
        self.run, self.models, self.tokenizer = run, tuple(models), run.tokenizer

    def extraction(self, text: str) -> Extraction:
        """
        Read how links are to be read off.

        Parameters
        ----------
        text : str
            Such as ``layer=2,shift``.

        Returns
        -------
        Extraction
            One that this model can do.

        Notes
        -----
        Raises `SettingError` if the model has no such layer or head.
        """
        config = self.run.config.model
        found = Extraction.parse(text)
        found.check(config.decoder_layers, config.decoder_heads or config.heads)
        return found

    def pair_ids(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> tuple[list[list[int]], list[list[int]]]:
        """
        Cut given pairs into subwords.

        Parameters
        ----------
        sources : sequence of str
            One sentence each.
        targets : sequence of str
            Their translations, in order.

        Returns
        -------
        sources : list of list of int
            Subwords, without special symbols.
        targets : list of list of int
            Subwords, without special symbols.

        Notes
        -----
        Raises `TextError` if a side is too long: a given translation is never cut.
        """
        ids = self.tokenizer.encode_source(sources), self.tokenizer.encode_target(targets)
        limit = self.run.config.search.max_source_length
        for number, sides in enumerate(zip(*ids, strict=True), start=1):
            if (length := max(map(len, sides))) > limit:
                raise TextError(
                    f"a given pair must have at most {limit:,} subwords a side "
                    f"(search.max_source_length), but pair {number} has {length:,}; leave it out."
                )
        return ids

    def cross(
        self, sources: Sequence[Ids], targets: Sequence[Ids]
    ) -> Iterator[tuple[int, Float[np.ndarray, "layers heads target source"]]]:
        """
        Compute the cross attention of pairs, many at a time.

        Parameters
        ----------
        sources, targets : sequence of sequence of int
            Subwords of the pairs, without special symbols.

        Yields
        ------
        number : int
            Of the pair; the longest pairs come first.
        weights : ndarray of float, shape (layers, heads, target, source)
            One row more than target subwords, for the end symbol; a column for each source subword.

        Notes
        -----
        One pass over known targets, as in training. At most 2,048 places a batch, or one pair: the
        weights of six layers of eight heads are 70 MB then at 60 subwords a side.
        """
        lengths = [max(len(s), len(t)) + 1 for s, t in zip(sources, targets, strict=True)]
        for rows in by_length(lengths, _BATCH_TOKENS):
            some = [sources[row] for row in rows], [targets[row] for row in rows]
            weights = torch.stack([self._cross(model, *some) for model in self.models]).mean(0)
            for place, row in enumerate(rows):
                real = weights[place, :, :, : len(targets[row]) + 1, : len(sources[row])]
                yield row, real.float().cpu().numpy()

    @torch.inference_mode()
    def _cross(
        self, model: Transformer, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> Float[Tensor, "rows layers heads target source"]:
        """Compute one model's weights; each member of an ensemble reads its own start token."""
        batch = self.run.collator(model).batch(sources, targets).to(model.device)
        found = torch.stack(model.attention(batch.source, batch.target_in).cross, dim=1).float()
        config = self.run.config.model
        if found.shape[1:3] != (config.decoder_layers, config.decoder_heads or config.heads):
            raise SettingError(
                "alignments of an ensemble need members with as many decoder layers and heads as "
                "the first, but they differ; name one run alone to align with it."
            )
        return found

    def align(
        self, sources: Sequence[str], targets: Sequence[str], by: Extraction
    ) -> list[WordAlignment]:
        """
        Align the words of given pairs.

        Parameters
        ----------
        sources : sequence of str
            One sentence each.
        targets : sequence of str
            Their translations, in order.
        by : Extraction
            How links are read off.

        Returns
        -------
        list of Alignment
            In order.

        Notes
        -----
        A pair with an empty side has no links.
        """
        pairs = self._given(sources, targets)
        found = [WordAlignment((), (), ())] * len(pairs)
        for number, cross in self._cross_of(pairs):
            source, target = pairs[number]
            links = attention_links(cross, source.units, target.units, by)
            found[number] = _alignment(source.words, target.words, links)
        return found

    def rate(
        self, sources: Sequence[str], targets: Sequence[str], gold: Sequence[GoldLinks]
    ) -> dict[Extraction, LinkCounts]:
        """
        Measure how well each layer aligns given pairs.

        Parameters
        ----------
        sources : sequence of str
            One sentence each.
        targets : sequence of str
            Their translations, in order.
        gold : sequence of GoldLinks
            Their gold links.

        Returns
        -------
        dict of Extraction to LinkCounts
            Best first.

        Notes
        -----
        The first key is the best way to read alignments off this model.
        """
        pairs = self._given(sources, targets)
        for number, (pair, links) in enumerate(zip(pairs, gold, strict=True), start=1):
            words = [len(side.words) for side in pair]
            far = [max((link[side] for link in links.possible), default=-1) for side in (0, 1)]
            if far[0] >= words[0] or far[1] >= words[1]:
                raise TextError(
                    f"gold links must count the words between spaces, from 0, but pair {number} "
                    f"has {words[0]} and {words[1]} words and links up to {far[0]} and {far[1]}; "
                    "give the text as the annotators had it."
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
    ) -> list[list[TranslationNote]]:
        """
        Align translations and replace their unknown words.

        Parameters
        ----------
        texts : sequence of str
            Source lines.
        sources : sequence of sequence of int
            Their subwords.
        written : sequence of sequences of sequence of int
            For each line the subwords of its translations, best first.
        by : Extraction
            How links are read off.
        align : bool, default True
            Whether alignments are wanted.
        replace : bool or mapping of str to str, default False
            Whether unknown words are replaced by source words, or by their given translations.

        Returns
        -------
        list of list of Note
            In the order of `written`.

        Notes
        -----
        Attention is computed only for translations that need it. An unknown word stands for the
        word that is looked at most, whatever the threshold of the alignment.
        """
        dictionary = replace if isinstance(replace, Mapping) else {}
        notes = [[TranslationNote()] * len(several) for several in written]
        places = [
            (row, rank)
            for row, several in enumerate(written)
            for rank, ids in enumerate(several)
            if align or (replace is not False and UNKNOWN in ids)
        ]
        given = {row: self._source(texts[row], sources[row]) for row, _ in places}
        pairs = [
            (given[row], segment_ids(self.tokenizer, written[row][rank])) for row, rank in places
        ]
        for number, cross in self._cross_of(pairs):
            source, target = pairs[number]
            words, text = target.words, None
            links = attention_links(cross, source.units, target.units, by)
            if replace is not False and target.unknown:
                looked_up = attention_links(cross, source.units, target.units, by.hard)
                words = replace_unknown(words, target.unknown, looked_up, source.words, dictionary)
                words, links = split_words(words, links)
                text = " ".join(words)
            row, rank = places[number]
            alignment = _alignment(source.words, words, links) if align else None
            notes[row][rank] = TranslationNote(alignment, text)
        return notes

    def _given(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> list[tuple[SegmentedText, SegmentedText]]:
        """Find the words of given pairs."""
        source_ids, target_ids = self.pair_ids(sources, targets)
        return list(
            zip(
                map(self._source, sources, source_ids),
                map(self._target, targets, target_ids),
                strict=True,
            )
        )

    def _source(self, text: str, ids: Ids) -> SegmentedText:
        """Find the words of a source line."""
        return segment_text(self.tokenizer, text, ids, self.tokenizer.pieces_source(ids))

    def _target(self, text: str, ids: Ids) -> SegmentedText:
        """Find the words of a given translation."""
        return segment_text(self.tokenizer, text, ids, self.tokenizer.pieces_target(ids))

    def _cross_of(
        self, pairs: Sequence[tuple[SegmentedText, SegmentedText]]
    ) -> Iterator[tuple[int, Float[np.ndarray, "layers heads target source"]]]:
        """Compute the cross attention of pairs as sides."""
        return self.cross([source.ids for source, _ in pairs], [target.ids for _, target in pairs])


def _alignment(source: Iterable[str], target: Iterable[str], links: Links) -> WordAlignment:
    """Put words and sorted links together."""
    return WordAlignment(tuple(source), tuple(target), tuple(sorted(links)))
