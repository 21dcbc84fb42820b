"""
HTML as sentences to translate, and the tags to put back.

::

    <p>The <b>red</b> dog.</p>
      pieces   The red dog.
      filled   <p>Le chien <b>rouge</b>.</p>

Tags are never shown to a model. Those that stand between sentences stay there; those inside a
sentence follow the words that they stood around, by the word alignment of the translation. What is
not text stays as it is, to the character, and a translation is only ever inserted as text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.serve.text.links import Links


@dataclass(frozen=True)
class Markup:
    """
    Hold the sentences of an HTML text and the markup around and inside them.

    Attributes
    ----------
    pieces : tuple of str
        What is to be translated, in order: plain text, without tags and entities, with one space
        between words.
    linked : tuple of bool
        For each piece whether tags stand inside it, so that its word alignment is of use.

    Notes
    -----
    Made by `Markup.parse`.
    """

    pieces: tuple[str, ...]
    linked: tuple[bool, ...]

    @classmethod
    def parse(cls, html: str, language: str) -> "Markup":
        """
        Find the sentences of an HTML text.

        Parameters
        ----------
        html : str
            A document or a fragment, correct or not.
        language : str
            Code of its language, such as ``en``.

        Returns
        -------
        Markup
            The sentences and what stands around them.

        Notes
        -----
        Never fails: what cannot be understood as markup stays as it is.
        """
        raise NotImplementedError

    def fill(self, translations: Sequence[str], links: Sequence[Links | None] = ()) -> str:
        """
        Put translations where the sentences were, and tags around the words they belong to.

        Parameters
        ----------
        translations : sequence of str
            One for each piece, in order: plain text.
        links : sequence of (iterable of (int, int) or None), optional
            For each piece the word alignment of its translation; where it is not known, tags are
            put at the same share of the words.

        Returns
        -------
        str
            The translated HTML.

        Notes
        -----
        ``markup.fill(markup.pieces)`` is the HTML that was parsed, to the character. Every tag
        is there once, as it was written.
        """
        raise NotImplementedError
