"""
A constituency tree.

::

    (S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))

Inner nodes are phrases; a word stands below its part of speech, which is its tag.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

OPEN, CLOSE = "-LRB-", "-RRB-"
"""How the Penn Treebank writes the words “(” and “)”."""
_TEXTS = {OPEN: "(", CLOSE: ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


@dataclass(frozen=True, slots=True)
class Tree:
    """A phrase with its children, or a word with its tag."""

    label: str
    """The label of the phrase, or the tag of the word."""
    children: tuple["Tree", ...] = ()
    word: str | None = None
    """None for a phrase."""

    def __str__(self) -> str:
        """Write the tree on one line, as `heedful.tasks.parsing.trees.read` reads it."""
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
        """The words."""
        return tuple(leaf.word for leaf in self.leaves() if leaf.word is not None)

    @property
    def tags(self) -> tuple[str, ...]:
        """The part of speech of each word."""
        return tuple(leaf.label for leaf in self.leaves())

    def phrases(self) -> list[tuple[str, int, int]]:
        """List the phrases, outer ones first: label, first word, word after the last."""
        phrases: list[tuple[str, int, int]] = []
        self._collect(0, phrases)
        return phrases

    def _write(self, parts: list[str]) -> None:
        """Add the text of this tree."""
        parts.append(f"({self.label}")
        for child in self.children:
            parts.append(" ")
            child._write(parts)
        parts.append(")" if self.word is None else f" {self.word})")

    def _collect(self, start: int, phrases: list[tuple[str, int, int]]) -> int:
        """Add the phrases of this tree, whose first word is `start`; return where it ends."""
        if self.word is not None:
            return start + 1
        place, end = len(phrases), start
        phrases.append((self.label, start, start))
        for child in self.children:
            end = child._collect(end, phrases)
        phrases[place] = (self.label, start, end)
        return end


def with_tags(tree: Tree, tags: tuple[str, ...]) -> Tree:
    """Give the words of a tree other parts of speech."""
    rest = iter(tags)

    def tagged(node: Tree) -> Tree:
        if node.word is not None:
            return replace(node, label=next(rest))
        return replace(node, children=tuple(map(tagged, node.children)))

    return tagged(tree)


def flat_tree(words: tuple[str, ...], tags: tuple[str, ...], label: str = "S") -> Tree:
    """Build the tree in which one phrase holds all words."""
    leaves = zip(words, tags, strict=True)
    return Tree(label, tuple(Tree(tag, word=word) for word, tag in leaves))


def escape_brackets(word: str) -> str:
    """
    Write round brackets in a word as the Penn Treebank does; no tree could hold them.

    Other brackets stay, because treebanks differ in them.

    >>> escape_brackets("(")
    '-LRB-'
    """
    return word.replace("(", OPEN).replace(")", CLOSE)


def unescape_brackets(word: str) -> str:
    """Write an escaped bracket as the bracket it stands for."""
    return _TEXTS.get(word, word)
