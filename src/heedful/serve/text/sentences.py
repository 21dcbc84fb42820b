"""
Long text as sentences to translate, and what stands between them.

::

    "  Hello. How are you?\n\n- Fine.\n"
      pieces   Hello.   How are you?   Fine.
      gaps     "  "  " "  "\n\n- "  "\n"

A model translates one sentence at a time; it never sees a line break. Pieces and gaps hold every
character of the text, so that pieces put back as they are give the text as it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.serve.text.links import Links


@dataclass(frozen=True)
class Layout:
    """
    Hold the sentences of a text and what stands between them.

    Attributes
    ----------
    pieces : tuple of str
        What is to be translated, in order; each begins and ends with a character that is no space.
    gaps : tuple of str
        What stands before, between and behind them: one more than pieces.

    Notes
    -----
    A text of spaces, line breaks and bullets alone has no pieces and one gap.
    """

    pieces: tuple[str, ...]
    gaps: tuple[str, ...]

    @property
    def linked(self) -> tuple[bool, ...]:
        """For each piece whether `fill` makes use of its alignment: never."""
        return (False,) * len(self.pieces)

    def fill(self, translations: Sequence[str], links: Sequence[Links | None] = ()) -> str:
        """
        Put translations where the sentences were.

        Parameters
        ----------
        translations : sequence of str
            One for each piece, in order.
        links : sequence, optional
            Not used; here so that text and markup are filled alike.

        Returns
        -------
        str
            The translated text.

        Notes
        -----
        ``layout.fill(layout.pieces)`` is the text that was split, to the character.
        """
        raise NotImplementedError


def split(text: str, language: str) -> Layout:
    """
    Find the sentences of a text.

    Parameters
    ----------
    text : str
        Of any length, with any line breaks.
    language : str
        Code of its language, such as ``en``.

    Returns
    -------
    Layout
        The sentences and what stands between them.

    Notes
    -----
    A sentence never goes on over a line break.
    """
    raise NotImplementedError
