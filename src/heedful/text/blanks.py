"""
White space in a sentence that a model reads.

Tokenization keeps all white space, and training text has single spaces nearly everywhere. An extra
space is a symbol that the model has hardly seen, and it can change the whole translation. So all
text for a trained translator passes through `read_source`. The translation gets the white space
that surrounded the sentence. White space is defined by `str.isspace`: spaces of all widths, tabs,
line ends.
"""

import re

_RUN = re.compile(r"\s{2,}")
# Whitespace characters that some programs treat as line ends.
_LINE_END = re.compile("[\n-\r\x1c-\x1f\x85\u2028\u2029]")


def read_source(text: str) -> str:
    r"""
    Reduce the white space of a sentence to single spaces between its words.

    >>> read_source(" a\u00a0big\t\u3000dog ")
    'a big dog'
    """
    return " ".join(text.split())


def read_target(text: str) -> str:
    r"""
    Reduce runs of white space in a given translation to single spaces.

    A single no-break space stays, since a model learns to write it: “10\u00a0%”, “Quoi\u202f?”.

    >>> read_target(" Quoi\u202f?  Rien. ")
    'Quoi\u202f? Rien.'
    """
    return _RUN.sub(" ", text.strip())


def outer_blanks(text: str) -> tuple[str, str]:
    r"""
    Return the white space before and after a sentence; for a blank line, all of it is before.

    Line ends are left out, because a translation is one line.

    >>> outer_blanks("  a dog \r")
    ('  ', ' ')
    """
    start = len(text) - len(text.lstrip())
    before, after = text[:start], text[max(start, len(text.rstrip())) :]
    return _LINE_END.sub("", before), _LINE_END.sub("", after)
