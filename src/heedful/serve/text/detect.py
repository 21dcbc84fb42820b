"""
Which language a text is in, and how sure that is.

Only the languages that are asked for come into question, but text in none of them is told: its
confidences are low.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Guess(NamedTuple):
    """
    Hold a language that a text may be in.

    Attributes
    ----------
    language : str
        Its code, such as ``en``.
    confidence : float
        Percent: of a hundred such guesses with 90, some ninety are right.

    Notes
    -----
    As LibreTranslate answers.
    """

    language: str
    confidence: float


def detect(text: str, languages: Sequence[str]) -> list[Guess]:
    """
    Guess the language of a text.

    Parameters
    ----------
    text : str
        Of any length.
    languages : sequence of str
        Codes of those that come into question.

    Returns
    -------
    list of Guess
        All of them, the likeliest first.

    Notes
    -----
    Without a letter nothing is known: every confidence is 0.
    """
    raise NotImplementedError
