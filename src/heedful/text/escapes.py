"""
Escapes of Moses' tokenizer, which still occur in parts of many corpora.

Moses' scripts write some characters as entities, and a hyphen inside a word as ``@-@``. The
entities here are those of ``deescape-special-chars.perl``, including older names of brackets and
bars.
"""

import re
from collections.abc import Iterator

_CHARACTERS = {
    "amp": "&",
    "apos": "'",
    "quot": '"',
    "lt": "<",
    "gt": ">",
    "#124": "|",
    "bar": "|",
    "#91": "[",
    "bra": "[",
    "#93": "]",
    "ket": "]",
}
_ENTITY = re.compile(f"&({'|'.join(_CHARACTERS)});")
_HYPHEN = re.compile(r"(?<=\S) @-@ (?=\S)")


def has_escapes(line: str) -> bool:
    """Return whether a line contains an entity or an escaped hyphen."""
    return ("&" in line and _ENTITY.search(line) is not None) or " @-@ " in line


def unescape(line: str) -> str:
    """
    Resolve the escapes of a line.

    >>> unescape("it &apos;s well @-@ known &amp;lt;")
    "it 's well-known &lt;"
    """
    return _HYPHEN.sub("-", _ENTITY.sub(lambda match: _CHARACTERS[match[1]], line))


class Unescaping:
    """A change of pairs that resolves escapes and counts the pairs that contain any."""

    def __init__(self) -> None:
        self.pairs = 0

    def __call__(self, pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Resolve the escapes of both sides."""
        self.pairs = 0
        for pair in pairs:
            self.pairs += any(map(has_escapes, pair))
            yield unescape(pair[0]), unescape(pair[1])
