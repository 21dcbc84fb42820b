r"""
Normalization that changes no content: white space, invisible characters, composed letters.

::

    " the\u00a0big  re\u00add dog\ufeff"   →   "the big red dog"

With ``data.reading = text``, training, validation, scoring and translation begin with this
normalization. A letter and the accent after it become one character (Unicode's form NFC). Invisible
characters are dropped. A zero-width joiner stays where its script needs it and inside an emoji
sequence.
"""

import re
import unicodedata

from heedful.text.blanks import read_source, read_target

# Scripts in which U+200C and U+200D choose the form of a letter: Arabic to Indic, Myanmar, Khmer.
JOINED = "\u0600-\u0dff\u1000-\u109f\u1780-\u18af\ua840-\uabff\ufb50-\ufdff\ufe70-\ufefc"
EMOJI = "©®‼⁉™ℹ\u2190-\u2bff〰〽㊗㊙\U0001f000-\U0001faff"
"""Characters of emoji sequences, for a character class of a regular expression."""
SELECTORS = "\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"
"""Modifiers of the form or color of an emoji, for a character class like `EMOJI`."""

# Soft hyphen, zero-width and word joiners, marks of direction, byte order mark.
_UNSEEN = "\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
# C0, DEL and C1 without those that `str.isspace` counts as blanks.
_CONTROLS = "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
_STRAY_JOINER = (
    f"(?<![{JOINED}])\u200c"
    f"|(?<![{JOINED}{EMOJI}{SELECTORS}])\u200d"
    f"|(?<=[{EMOJI}{SELECTORS}])\u200d(?![{EMOJI}])"
)
_DROPPED = re.compile(f"[{_UNSEEN}]|{_STRAY_JOINER}")
_CONTROL = re.compile(f"[{_CONTROLS}]")


def visible(text: str) -> str:
    r"""
    Drop invisible characters and compose letters; control characters become spaces.

    >>> visible("Cafe\u0301 re\u00add\u200b 👩\u200d👧")
    'Café red 👩\u200d👧'
    """
    if text.isprintable():  # it has none of the characters that are dropped or replaced below
        return text if text.isascii() else unicodedata.normalize("NFC", text)
    return unicodedata.normalize("NFC", _CONTROL.sub(" ", _DROPPED.sub("", text)))


def read_source_characters(text: str) -> str:
    """Read a source line: visible characters with single spaces between its words."""
    return read_source(visible(text))


def read_target_characters(text: str) -> str:
    """Read a given translation; a single no-break space stays, as in `read_target`."""
    return read_target(visible(text))
