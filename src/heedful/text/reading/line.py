"""
Preparation of a line for the model, and restoration of its translation.

::

    read      "The big red dog 👍 sleeps"  →  "the big red dog sleeps", and what was taken from it
    restore   "le gros chien rouge dort"   →  "Le gros chien rouge 👍 dort", and notes
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from heedful.text.lines import without_controls
from heedful.text.reading.case import CasedWords, read_case
from heedful.text.reading.draft import Link, draft, word_spans
from heedful.text.reading.held import Piece, cut_line, unbroken_spans
from heedful.text.reading.letter_case import UNKNOWN, Languages
from heedful.text.reading.model_line import Gap, ModelLine, model_line
from heedful.text.reading.note import HeldNote, ReadingNote
from heedful.text.reading.numbers import changed_numbers
from heedful.text.reading.prefix import NO_PREFIX, Prefix, with_prefix
from heedful.text.reading.restore import cut_loops, put_back, restore_case
from heedful.text.reading.terms import Terms
from heedful.text.reading.vocabulary import SourceVocabulary


class RestoredLine(NamedTuple):
    """A restored translation."""

    text: str
    words: tuple[str, ...]
    links: tuple[Link, ...]
    """Links between words of the prepared line and words of the text."""
    note: ReadingNote


@dataclass(frozen=True)
class ReadLine:
    """A line that was prepared for the model."""

    original: str
    pieces: tuple[Piece, ...]
    line: ModelLine
    cased: CasedWords
    reads_text: bool
    languages: Languages = UNKNOWN

    @property
    def shown(self) -> str:
        """The prepared line, held pieces included."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def text(self) -> str:
        """The text for the model; empty if there is none."""
        return "" if self.is_copied else " ".join(self.cased.words)

    @property
    def is_copied(self) -> bool:
        """Whether there is nothing to translate."""
        seen = self.line.text
        return not any(map(str.isalpha, seen)) if self.reads_text else not seen

    @property
    def needs_links(self) -> bool:
        """Whether restoration uses word links."""
        line, changed = self.cased.line, sum(self.cased.changed)
        by_word = line not in ("upper", "title") and changed > (line == "sentence")
        return not self.is_copied and (by_word or any(map(self._is_inner, self.line.gaps)))

    def _is_inner(self, gap: Gap) -> bool:
        """Whether a gap is a term or has words on both sides."""
        sides = self.line.text[: gap.seen[0]], self.line.text[gap.seen[0] :]
        return gap.piece.kind == "term" or all(any(map(str.isalnum, side)) for side in sides)

    def copy(self) -> RestoredLine:
        """Return the line itself as its translation, with the user's terms replaced."""
        terms = [piece for piece in self.pieces if piece.put not in ("", piece.text)]
        text = "".join(piece.put or piece.text for piece in self.pieces)
        if not terms:
            text = without_controls(self.original.replace("\ufeff", ""))[0].strip()
        words = tuple(text.split())
        links = tuple((number, number) for number in range(len(words)))
        held_notes = tuple(HeldNote(piece.text, piece.put, "edge") for piece in terms)
        return RestoredLine(text, words, links, ReadingNote(copied=True, held=held_notes))

    def restore(
        self,
        translation: str,
        words: Sequence[str],
        links: Iterable[Link],
        prefix: Prefix = NO_PREFIX,
    ) -> RestoredLine:
        """
        Restore everything that was taken from the line.

        `words`: words of the translation, to which the links refer. `links`: links between words of
        the text for the model and these words.
        `prefix`: the beginning that the user gave, which stays unchanged.
        """
        seen = self.text
        changed, fixed = with_prefix(draft(translation, words, links), prefix)
        note = ReadingNote()
        if self.reads_text:
            numbers = changed_numbers(seen, translation)
            changed, loops = cut_loops(changed, seen, fixed)
            originals = self.line.text.split(" ")
            changed, case = restore_case(changed, originals, self.cased, self.languages, fixed)
            note = ReadingNote(case=case, numbers=numbers, loops=loops)
        changed, held_notes = put_back(changed, self.line, word_spans(self.shown), fixed)
        links = changed.links
        return RestoredLine(
            changed.text, tuple(changed.words), links, replace(note, held=held_notes)
        )


@dataclass(frozen=True)
class LineReader:
    """
    A reader that prepares lines for a model; each `ReadLine` restores its translation.

    `reads_text`: whether to hold back untranslatable forms and unknown text, restore case, cut
    loops and copy lines without a letter; if not, only terms are handled. `aligns`: whether word
    links are available.
    """

    vocabulary: SourceVocabulary
    terms: Terms | None = None
    reads_text: bool = True
    aligns: bool = True

    def unbroken(self, text: str) -> list[tuple[int, int]]:
        """Find the parts of a text that must not be cut: held pieces and terms."""
        languages = Languages(self.vocabulary.language)
        return unbroken_spans(text, self.terms, languages, holds=self.reads_text)

    def read(self, line: str, target_language: str = "") -> ReadLine:
        """Prepare a line for the model, with the case rules of its language."""
        languages = Languages(self.vocabulary.language, target_language)
        pieces = cut_line(
            line,
            self.terms,
            self.vocabulary,
            holds=self.reads_text,
            aligns=self.aligns,
            languages=languages,
        )
        seen = model_line(pieces)
        words = seen.text.split(" ")
        cased = CasedWords(words, [False] * len(words))
        if self.reads_text:
            known_form = self.vocabulary.known_form
            cased = read_case(["".join(map(known_form, word)) for word in words], self.vocabulary)
        return ReadLine(line, tuple(pieces), seen, cased, self.reads_text, languages)
