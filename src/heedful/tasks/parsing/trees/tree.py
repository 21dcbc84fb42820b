"""
A constituency tree.

::

    (S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))

Inner nodes are phrases; a word is below its part of speech, which is its tag.
"""

from collections.abc import Iterator
from dataclasses import dataclass

OPEN, CLOSE = "-LRB-", "-RRB-"
"""The Penn Treebank's notation for the words “(” and “)”."""
_TEXTS = {OPEN: "(", CLOSE: ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


@dataclass(frozen=True, slots=True)
class Tree:
    """A phrase with its children, or a word with its tag."""

    label: str
    """The label of the phrase, or the tag of the word."""
    children: tuple["Tree", ...] = ()
    word: str | None = None
    """The word; None for a phrase."""

    def __str__(self) -> str:
        """Format the tree on one line, which `heedful.tasks.parsing.trees.read` can read."""
        parts: list[str] = []
        self._write(parts)
        return "".join(parts)

    def leaves(self) -> Iterator["Tree"]:
        """List the words with their tags, from left to right."""
        if self.word is not None:
            yield self
        for child in self.children:
            yield from child.leaves()

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the tree, from left to right."""
        return tuple(leaf.word for leaf in self.leaves() if leaf.word is not None)

    @property
    def tags(self) -> tuple[str, ...]:
        """The part of speech of each word."""
        return tuple(leaf.label for leaf in self.leaves())

    def phrases(self) -> list[tuple[str, int, int]]:
        """List each phrase's label, first index and end index, outer phrases first."""
        phrases: list[tuple[str, int, int]] = []
        self._collect(0, phrases)
        return phrases

    def _write(self, parts: list[str]) -> None:
        """Append the text of this tree to `parts`."""
        parts.append(f"({self.label}")
        for child in self.children:
            parts.append(" ")
            child._write(parts)
        parts.append(")" if self.word is None else f" {self.word})")

    def _collect(self, start: int, phrases: list[tuple[str, int, int]]) -> int:
        """Append the phrases of this tree, which begins at word `start`; return its end."""
        if self.word is not None:
            return start + 1
        place, end = len(phrases), start
        phrases.append((self.label, start, start))
        for child in self.children:
            end = child._collect(end, phrases)
        phrases[place] = (self.label, start, end)
        return end


def flat_tree(words: tuple[str, ...], tags: tuple[str, ...], label: str = "S") -> Tree:
    """Build the tree in which one phrase contains all words."""
    leaves = zip(words, tags, strict=True)
    return Tree(label, tuple(Tree(tag, word=word) for word, tag in leaves))


def escape_brackets(word: str) -> str:
    """
    Escape parentheses in a word as the Penn Treebank does, because trees cannot contain them.

    Other brackets are not escaped, because treebanks treat them differently.

    >>> escape_brackets("(")
    '-LRB-'
    """
    return word.replace("(", OPEN).replace(")", CLOSE)


def unescape_brackets(word: str) -> str:
    """Replace an escaped bracket with the bracket that it represents."""
    return _TEXTS.get(word, word)
