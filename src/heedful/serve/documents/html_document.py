"""
HTML documents: sentences to translate, and tags to restore.

::

    <p>The <b>red</b> dog.</p>
      pieces   The red dog.
      filled   <p>Le chien <b>rouge</b>.</p>

The model never sees tags. Tags between sentences stay there; tags inside a sentence follow the
words that they enclosed, according to the word alignment. Everything else stays the same, character
for character, and a translation is inserted as text only.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from heedful.serve.documents.html_blocks import Atom, AtomKind, paragraphs
from heedful.serve.documents.tag_projection import Links, Mark, escape_html, place
from heedful.text.sentences import Fits, sentence_spans


@dataclass(frozen=True)
class Sentence:
    """A sentence: its plain text, its source, its markup, and the function that escapes text."""

    text: str
    raw: str
    marks: tuple[Mark, ...]
    escape: Callable[[str], str] = escape_html

    def filled(self, translation: str, links: Links | None) -> str:
        """Return the translation, with the markup of the sentence."""
        if translation == self.text:
            return self.raw
        if not self.marks:
            return self.escape(translation)
        return place(self.text, self.marks, translation, links, self.escape)


@dataclass(frozen=True)
class Markup:
    """The sentences of an HTML document and the markup around and inside them."""

    pieces: tuple[str, ...]
    """
    Sentences to translate, in order: plain text, without tags and entities, with one space between
    words.
    """
    linked: tuple[bool, ...]
    """For each piece, whether it contains tags and so needs a word alignment."""
    parts: tuple[str | Sentence, ...]
    """Sentences, and the markup between them."""

    @classmethod
    def parse(cls, html: str, language: str, fits: Fits | None = None) -> "Markup":
        """
        Find the sentences of an HTML document.

        It never fails: invalid markup stays unchanged. The content of these elements also stays
        unchanged: ``<script>``, ``<style>``, ``<pre>``, ``<code>``, ``<kbd>``, ``<samp>``,
        ``<var>``, ``<textarea>``, ``<svg>``, ``<math>``, and elements with ``translate="no"`` or
        the class ``notranslate``. If a short element such as ``<code>`` is inside a sentence, the
        model sees the words of the element.
        """
        parts: list[str | Sentence] = []
        for part in paragraphs(html):
            parts += [part] if isinstance(part, str) else find_sentences(part, language, fits)
        return cls.of(parts)

    @classmethod
    def of(cls, parts: "Sequence[str | Sentence]") -> "Markup":
        """Build the object from sentences and the markup between them."""
        sentences = [part for part in parts if isinstance(part, Sentence)]
        pieces = tuple(sentence.text for sentence in sentences)
        return cls(pieces, tuple(bool(sentence.marks) for sentence in sentences), tuple(parts))

    def fill(self, translations: Sequence[str], links: Sequence[Links | None] = ()) -> str:
        """
        Replace the sentences with translations, with tags around the corresponding words.

        ``markup.fill(markup.pieces)`` is exactly the HTML that was parsed. Every tag occurs exactly
        once in the result, as it was written.
        """
        if len(translations) != len(self.pieces):
            raise ValueError(
                f"{len(self.pieces)} pieces cannot have {len(translations)} translations"
            )
        pairs = iter(zip(translations, links or [None] * len(translations), strict=True))
        return fill_parts(self.parts, pairs)


def fill_parts(parts: Sequence[str | Sentence], pairs: Iterator[tuple[str, Links | None]]) -> str:
    """Replace each sentence with the next translation in `pairs`, using its word links."""
    return "".join(part if isinstance(part, str) else part.filled(*next(pairs)) for part in parts)


def visible_text(html: str) -> str:
    """Extract the translatable text that a page shows."""
    # Language detection uses this text, because the names of tags and attributes look English.
    blocks = (part for part in paragraphs(html) if not isinstance(part, str))
    return "\n".join("".join(atom.text for atom in atoms) for atoms in blocks)


def find_sentences(
    atoms: Sequence[Atom],
    language: str,
    fits: Fits | None,
    escape: Callable[[str], str] = escape_html,
) -> list[str | Sentence]:
    """Split a block into sentences."""
    # most blocks contain only the spaces between two tags
    if not any(atom.text.isalpha() for atom in atoms if atom.part is AtomKind.TEXT):
        return ["".join(atom.raw for atom in atoms)]
    shown = "".join(atom.text for atom in atoms)
    # An untranslated element counts as one word, in which no sentence ends.
    masked = "".join("X" * len(a.text) if a.part is AtomKind.KEPT else a.text for a in atoms)
    starts = [0, *accumulate(len(atom.text) for atom in atoms)]
    parts: list[str | Sentence] = []
    here = 0
    for start, end in sentence_spans(masked, language, fits, shown):
        # Take only atoms that are completely inside. An untranslated element that was divided stays
        # between the two sentences.
        first = here
        while first < len(atoms) and (starts[first] < start or not atoms[first].text.strip()):
            first += 1
        last = stop = first
        while stop < len(atoms) and starts[stop + 1] <= end:
            stop += 1
            last = stop if atoms[stop - 1].text.strip() else last
        first, last = _with_partners(atoms, first, last, here)
        inside = atoms[first:last]
        if any(atom.text.isalpha() for atom in inside if atom.part is AtomKind.TEXT):
            before = "".join(atom.raw for atom in atoms[here:first])
            parts += [before, _sentence(inside, escape)]
            here = last
    return [*parts, "".join(atom.raw for atom in atoms[here:])]


def _with_partners(atoms: Sequence[Atom], first: int, last: int, least: int) -> tuple[int, int]:
    """Extend a sentence to an adjacent tag if the sentence contains the matching tag."""
    opened: list[str] = []
    closed: list[str] = []
    for atom in atoms[first:last]:
        if atom.part is AtomKind.OPEN:
            opened.append(atom.name)
        elif atom.part is AtomKind.CLOSE:
            if opened and opened[-1] == atom.name:
                opened.pop()
            else:
                closed.append(atom.name)
    while opened and last < len(atoms) and atoms[last].part is AtomKind.CLOSE:
        if atoms[last].name != opened.pop():
            break
        last += 1
    closed.reverse()
    while closed and first > least and atoms[first - 1].part is AtomKind.OPEN:
        if atoms[first - 1].name != closed.pop():
            break
        first -= 1
    return first, last


def _sentence(atoms: Sequence[Atom], escape: Callable[[str], str]) -> Sentence:
    """Collect the content of a sentence."""
    marks: list[Mark] = []
    where = 0
    for atom in atoms:
        end = where + len(atom.text)
        if atom.part is not AtomKind.TEXT:
            marks.append(Mark(atom, where, end))
        elif not atom.text and marks and marks[-1].end == where:
            # Spaces that are not shown after a tag stay with the tag.
            last = marks[-1]
            marks[-1] = last._replace(atom=last.atom._replace(raw=last.atom.raw + atom.raw))
        where = end
    text = "".join(atom.text for atom in atoms)
    return Sentence(text, "".join(atom.raw for atom in atoms), tuple(marks), escape)
