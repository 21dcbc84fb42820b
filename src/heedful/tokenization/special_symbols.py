"""
Special symbols, which no text can produce.

Four are in every vocabulary. Language tags may be added: a source line begins with ``>>de<<`` and a
space to name its target language. So one model serves several directions (Johnson et al. 2017,
“Google's Multilingual Neural Machine Translation System”).
"""

import re
from collections.abc import Sequence

from heedful.errors import TextError

PAD = 0
"""Padding, which fills the shorter lines of a batch."""
UNKNOWN = 1
"""Replaces text that the vocabulary lacks."""
START = 2
"""Begins a target sentence in the input of the decoder."""
END = 3
"""Ends a sentence."""

SPECIAL_IDS = {"pad": PAD, "unknown": UNKNOWN, "start": START, "end": END}
"""The special ids by their names in ``tokenizer.json``."""
SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>")
"""The text of the special ids, in their order."""
UNKNOWN_TEXT = "⁇"
"""Shown in place of unknown text."""

_TAG = re.compile(r">>[\w-]+<<")


def is_tag(text: str) -> bool:
    """
    Whether a text is a language tag, in the form of OPUS-MT models.

    >>> is_tag(">>pt_BR<<"), is_tag(">>a b<<")
    (True, False)
    """
    return _TAG.fullmatch(text) is not None


def split_tag(text: str, spaced: bool = True) -> tuple[str, str]:
    """
    Split the language tag from the beginning of a line.

    `spaced`: whether a space must follow a tag; MarianTokenizer does not require one.

    Returns the tag (empty if the line does not begin with one) and the text. One space belongs to
    the tag, further spaces to the text. A second tag is treated as text. A line may end after its
    tag.

    >>> split_tag(">>de<< Good morning.")
    ('>>de<<', 'Good morning.')
    >>> split_tag("Good >>de<< morning.")
    ('', 'Good >>de<< morning.')
    >>> split_tag(">>de<<Good morning."), split_tag(">>de<<Good morning.", spaced=False)
    (('', '>>de<<Good morning.'), ('>>de<<', 'Good morning.'))
    """
    match = _TAG.match(text)
    if match is None or (spaced and text[match.end() : match.end() + 1] not in ("", " ")):
        return "", text
    return match[0], text[match.end() :].removeprefix(" ")


def refuse_half_characters(texts: Sequence[str]) -> None:
    """
    Refuse text with lone surrogates.

    Python produces such text when it reads a file with the error handler `surrogateescape`.

    Raises `TextError` if a line contains a lone surrogate.
    """
    for number, text in enumerate(texts, start=1):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise TextError(
                f"Text must be whole Unicode characters, but text {number} of {len(texts)} "
                "holds half a surrogate pair; decode it as UTF-8."
            ) from error
