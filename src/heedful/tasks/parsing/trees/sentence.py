"""Sentences of a parser: words with single spaces between them."""

import re
from collections.abc import Iterable

from heedful.tasks.parsing.trees.tree import escape_brackets

_FIRST = 0xE000
# Other white space, such as thin spaces, may be part of a word, but is not a word on its own.
_SPACE = re.compile(r"[ \t\r\n]+")


def split_words(line: str) -> list[str]:
    """
    Split a line into words, with brackets written as in the Penn Treebank.

    >>> split_words("f ( x )")
    ['f', '-LRB-', 'x', '-RRB-']
    """
    return [escape_brackets(word) for word in _SPACE.split(line) if word.strip()]


def is_numbered(line: str) -> bool:
    """
    Return whether `join_words` has numbered the words of a line.

    >>> is_numbered(join_words(["a", "b"], numbers=8)), is_numbered("a b")
    (True, False)
    """
    return "\ue000" <= line[:1] <= "\uf8ff" and line[1:2] == " "


def join_words(words: Iterable[str], lower_case: bool = False, numbers: int | None = None) -> str:
    """
    Join words into the source text of a parser.

    `numbers`: if given, each word follows its index modulo `numbers`, written as a character of the
    private use area.
    """
    # SentencePiece would read ▁ as a space
    words = (word.replace("\u2581", "_") for word in words)
    if numbers is not None:
        marked = (f"{chr(_FIRST + i % numbers)} {word}" for i, word in enumerate(words))
        line = " ".join(marked)
    else:
        line = " ".join(words)
    return line.lower() if lower_case else line
