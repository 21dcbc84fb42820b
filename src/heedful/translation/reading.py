"""
Conversion of a user's lines to rows for a model, and of translated rows to translations.

::

    line ─ parts that fit into the model ─ rows ─ search ─ restored ─ joined ─ translation

With ``data.reading = exact`` and without terms, a row is a line. With ``text``, pieces that the
model cannot translate are cut from a row (`heedful.text.reading`). A line that is too long becomes
several rows, and a line without a letter has an empty row.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal, TypeVar

from heedful.data.coverage import CUT_FROM_WORDS, WORD_KINDS
from heedful.errors import SettingError, TextError
from heedful.search.observer import SearchObserver
from heedful.text.blanks import read_source, read_target
from heedful.text.lines import without_controls
from heedful.text.reading.line import LineReader, ReadLine, RestoredLine
from heedful.text.reading.note import ReadingNote, joined_notes
from heedful.text.reading.prefix import NO_PREFIX, Prefix
from heedful.text.reading.terms import Terms
from heedful.text.reading.vocabulary import LACKING, SourceVocabulary
from heedful.text.sentences import CutRule, TextLayout, split
from heedful.tokenization.bpe_codes import SEPARATOR
from heedful.tokenization.imported_model import ImportedModel, is_imported
from heedful.tokenization.special_symbols import SPECIAL_IDS, split_tag
from heedful.tokenization.tokenizer import UNKNOWN, Tokenizer
from heedful.translation.join import join_sentences
from heedful.translation.result import Translation, WordAlignment

LongLines = Literal["split", "cut"]
"""Treatment of a line with more subwords than the model reads."""
_BYTE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
_Entry = TypeVar("_Entry")


def vocabulary_of(tokenizer: Tokenizer) -> SourceVocabulary:
    """Describe the source vocabulary of a tokenizer."""
    model = tokenizer.models[0]
    costly = {number for number in range(model.size) if _BYTE.fullmatch(model.piece(number))}
    costly.add(UNKNOWN)

    def cost(texts: Sequence[str]) -> list[int]:
        rows = model.encode(texts)
        return [sum(LACKING if number in costly else 1 for number in row) for row in rows]

    alphabet: frozenset[str] = frozenset()
    if tokenizer.kind in CUT_FROM_WORDS:
        suffix = "" if tokenizer.kind in WORD_KINDS else SEPARATOR
        spelled = {*range(len(SPECIAL_IDS), model.size)}.difference(model.tags.values())
        if isinstance(model, ImportedModel):  # its embedding may have rows without a subword
            spelled -= {n for n, piece in enumerate(model.id_mapping.pieces) if piece is None}
        pieces = (model.piece(number).removesuffix(suffix) for number in spelled)
        alphabet = frozenset().union(*pieces)
    return SourceVocabulary(cost, alphabet, tokenizer.source_language)


class _LinePart:
    """A part of a line that the model reads at once; `read` is None if nothing needs restoring."""

    def __init__(self, row: str, tag: str = "", read: ReadLine | None = None) -> None:
        self.row, self.tag, self.read = row, tag, read

    def restored(self, row: Translation, prefix: Prefix = NO_PREFIX) -> Translation:
        """Restore what was taken from the line, in a translation and its alternatives."""
        if self.read is None:
            return row
        if self.read.is_copied:
            text = self.read.copy()
            return replace(
                Translation(text.text, 0.0, (), 0.0),
                alignment=self._alignment(text),
                reading=text.note,
            )
        others = tuple(self._restored_alone(choice, prefix) for choice in row.alternatives)
        return replace(self._restored_alone(row, prefix), alternatives=others)

    def _restored_alone(self, row: Translation, prefix: Prefix) -> Translation:
        """Restore one translation, without its alternatives."""
        assert self.read is not None
        tags = 1 if self.tag else 0
        words: Sequence[str] = ()
        links: Iterable[tuple[int, int]] = ()
        if (alignment := row.alignment) is not None:
            seen = self.row.split(" ") == list(alignment.source_words)
            words = alignment.target_words
            links = [(i - tags, j) for i, j in alignment.links if i >= tags] if seen else ()
        text = self.read.restore(row.text, words, links, prefix)
        is_same = text.text == row.text and self.read.shown == self.read.text
        aligned = alignment if is_same or alignment is None else self._alignment(text)
        return replace(row, text=text.text, alignment=aligned, reading=text.note)

    def _alignment(self, text: RestoredLine) -> WordAlignment:
        """Build the alignment of a restored line, its tag included."""
        assert self.read is not None
        tag = (self.tag,) if self.tag else ()
        links = tuple((i + len(tag), j) for i, j in text.links)
        return WordAlignment((*tag, *self.read.shown.split()), text.words, links)


@dataclass(frozen=True)
class ReadLines:
    """The prepared lines."""

    parts: tuple[tuple[_LinePart, ...], ...]
    """Parts of each line; a single part if the line is not split."""
    layouts: tuple[TextLayout | None, ...]
    """The layout of each line that was split; None for other lines."""
    cut: frozenset[int] = frozenset()
    """Lines that are too long for the model but not split."""

    @cached_property
    def rows(self) -> list[str]:
        """The texts for the model; empty for a line that it does not read."""
        return [part.row for parts in self.parts for part in parts]

    @cached_property
    def lines(self) -> list[int]:
        """The index of each row's line."""
        return [number for number, parts in enumerate(self.parts) for _ in parts]

    @property
    def linked(self) -> list[int]:
        """The rows that cannot be restored without word links."""
        flat = [part for parts in self.parts for part in parts]
        return [row for row, part in enumerate(flat) if part.read and part.read.needs_links]

    @cached_property
    def places(self) -> list[int]:
        """The index of each row among the rows of its line."""
        return [place for parts in self.parts for place, _ in enumerate(parts)]

    def spread(
        self, name: str, entries: Sequence[_Entry] | None, empty: _Entry
    ) -> list[_Entry] | None:
        """Give the entry of each line to its first row, and an empty entry to other rows."""
        repeated = self.repeat(name, entries)
        if repeated is None:
            return None
        return [empty if n else entry for entry, n in zip(repeated, self.places, strict=True)]

    def repeat(self, name: str, entries: Sequence[_Entry] | None) -> list[_Entry] | None:
        """
        Give the entry of each line to all of its rows.

        Raises `TextError` with the option's `name` if there is not one entry for each line.
        """
        if entries is None:
            return None
        if len(entries) != len(self.parts):
            raise TextError(
                f"{name} must have one entry for each line that is translated, but there are "
                f"{len(entries):,} for {len(self.parts):,} lines; give an empty entry for a line "
                "without a constraint."
            )
        return [entries[line] for line in self.lines]

    def restored(
        self, rows: Sequence[Translation], prefixes: Sequence[Prefix] = ()
    ) -> list[Translation]:
        """Turn translated rows into translations of the lines. `prefixes`: one for each row."""
        translated = iter(zip(rows, prefixes or [NO_PREFIX] * len(rows), strict=True))
        results = []
        for number, (parts, layout) in enumerate(zip(self.parts, self.layouts, strict=True)):
            several = [part.restored(*next(translated)) for part in parts]
            result = several[0]
            if layout is not None:
                notes = joined_notes(part.reading or ReadingNote() for part in several)
                result = replace(join_sentences(several, layout.fill), reading=notes)
            if number in self.cut:
                result = replace(result, reading=replace(result.reading or ReadingNote(), cut=True))
            results.append(result)
        return results


def check_observed(observer: SearchObserver | None, read: ReadLines, longest: int) -> None:
    """Refuse an observer of lines that were split, because it follows one search for each line."""
    if observer is not None and len(read.rows) > len(read.parts):
        raise SettingError(
            f"each line must have at most {longest:,} subwords (search.max_source_length) for "
            "`observer`, but one has more and was split; split it yourself, or leave `observer` "
            "out."
        )


def warn_of_loops(
    results: Sequence[Translation], first_line: int, warn: Callable[[str], None]
) -> None:
    """Report the lines whose translations had a loop that was cut."""
    for number, result in enumerate(results, start=first_line):
        if result.reading is not None and result.reading.loops:
            warn(
                f"line {number} has a translation that repeats text that the source does not "
                "repeat; only the first occurrence was kept."
            )


def without_links(translation: Translation) -> Translation:
    """Drop alignments that were only needed for restoration."""
    others = tuple(replace(choice, alignment=None) for choice in translation.alternatives)
    return replace(translation, alignment=None, alternatives=others)


class TextReader:
    """
    A reader of lines for one model.

    `reads_text`: whether ``data.reading`` is ``text``. `read_plain`: normalizes lines that are not
    read as text. `longest`: maximum number of subwords in a row. `aligns`: whether the engine can
    align words.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        read_plain: Callable[[Sequence[str]], list[str]],
        reads_text: bool,
        longest: int,
        aligns: bool,
    ) -> None:
        self.tokenizer, self.read_plain = tokenizer, read_plain
        self.reads_text, self.longest, self.aligns = reads_text, longest, aligns
        self._spaced = not is_imported(tokenizer.kind)
        # no subword is shorter than a byte
        self._most_around = sum(tokenizer.around_source) + len(tokenizer.source_prefix.encode())

    @cached_property
    def vocabulary(self) -> SourceVocabulary:
        """The source vocabulary."""
        return vocabulary_of(self.tokenizer)

    def read(
        self,
        lines: Sequence[str],
        terms: Terms | None = None,
        long_lines: LongLines = "split",
    ) -> ReadLines:
        """Read lines. `long_lines`: treatment of a line that is too long, if `reads_text`."""
        if not self.reads_text and terms is None:
            rows = self.read_plain(lines)
            return ReadLines(tuple((_LinePart(row),) for row in rows), (None,) * len(rows))
        reader = self.line_reader(terms)
        parts: list[tuple[_LinePart, ...]] = []
        layouts: list[TextLayout | None] = []
        cut = set()
        for number, line in enumerate(lines):
            tag, text = split_tag(line.strip(), self._spaced) if self.tokenizer.tags else ("", line)
            text = text if self.reads_text else self.read_plain([text])[0]
            layout: TextLayout | None = None
            parts_read: dict[str, _LinePart | None] = {}
            fits = partial(self._fits, reader, tag, parts_read)
            if self.reads_text and not fits(text):
                # the text between the parts is not translated, so control characters are replaced
                # here
                text, _ = without_controls(text)
                if long_lines == "cut":
                    cut.add(number)
                else:
                    rule = CutRule(fits, reader.unbroken)
                    layout = split(text, self.tokenizer.source_language, rule)
                    layout = layout if layout.pieces else None
            pieces = layout.pieces if layout is not None else (text,)
            parts.append(
                tuple(parts_read.get(piece) or self._part(reader, tag, piece) for piece in pieces)
            )
            layouts.append(layout)
        return ReadLines(tuple(parts), tuple(layouts), frozenset(cut))

    def prefixes(
        self,
        rows: Sequence[str],
        prefixes: Sequence[str] | None,
        numbers: Sequence[int],
        warn: Callable[[str], None] | None,
    ) -> list[Prefix]:
        """
        List the prefix of each row's translation, in the model's and in the user's spelling.

        `numbers`: numbers of the rows' lines, for messages about prefixes that cannot be used. With
        exact reading, prefixes need no restoration, so the list is empty.
        """
        if not prefixes or not self.reads_text:
            return []
        read = list(map(read_target, prefixes))
        for row, prefix, number in zip(rows, read, numbers, strict=True):
            if prefix and not row and warn is not None:
                warn(f"line {number} has nothing to translate, so its target prefix is not used.")
        ids = self.tokenizer.encode_target(read)
        decoded = map(self.tokenizer.decode, ids)
        return [Prefix(*pair) for pair in zip(decoded, read, strict=True)]

    def line_reader(self, terms: Terms | None) -> LineReader:
        """Return a reader of lines with a user's terms."""
        return LineReader(self.vocabulary, terms, self.reads_text, self.aligns)

    def cut_rule(self, terms: Terms | None, tag: str) -> CutRule:
        """Return the rule for where a text may be cut. `tag`: a language tag before each part."""
        # the end symbol takes one subword
        reader, room = self.line_reader(terms), self.longest - 1

        def fits(sentence: str) -> bool:
            # The space before the first word may be a subword.
            if len(sentence.encode()) + self._most_around < room:
                return True
            seen = read_source(reader.read(sentence).text if self.reads_text else sentence)
            (ids,) = self.tokenizer.encode_source([f"{tag} {seen}" if tag else seen])
            return len(ids) <= room

        return CutRule(fits, reader.unbroken)

    def seen(self, line: str) -> str:
        """Return the text that the model reads for a line, or the line if it is not one row."""
        rows = self.read([line]).rows
        return rows[0] if len(rows) == 1 and rows[0] else line

    def _part(self, reader: LineReader, tag: str, text: str) -> _LinePart:
        """Read a part of a line."""
        if not text.strip():
            return _LinePart("")
        target = tag.removeprefix(">>").removesuffix("<<") or self.tokenizer.target_language
        read = reader.read(text, target)
        return _LinePart(f"{tag} {read.text}" if tag and read.text else read.text, tag, read)

    def _fits(
        self, reader: LineReader, tag: str, parts_read: dict[str, _LinePart | None], text: str
    ) -> bool:
        """
        Return whether a model can read a text as one row.

        `parts_read`: the texts that were read, each with its part, or None if it is too long.
        """
        # The space before the first word may be a subword, and so may a tag.
        if len(text.encode()) + 2 + self._most_around < self.longest:
            return True
        if text not in parts_read:
            part = self._part(reader, tag, text)
            seen = "" if part.read is None else self.tokenizer.source_prefix + part.read.text
            (ids,) = self.tokenizer.models[0].encode([seen])
            length = len(ids) + bool(tag) + sum(self.tokenizer.around_source)
            parts_read[text] = part if length <= self.longest else None
        return parts_read[text] is not None
