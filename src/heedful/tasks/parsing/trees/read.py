"""
Read bracketed trees in the format of the Penn Treebank, each on one line or several lines.

Nesting is limited, so that a malicious file cannot exhaust the stack.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from heedful.errors import TextError
from heedful.tasks.parsing.trees.tree import CLOSE, OPEN, Tree, escape_brackets
from heedful.text.lines import plain_lines

DEEPEST = 200
"""Maximum number of phrases around a word; the Penn Treebank has at most about forty."""
# A word may contain other white space, such as thin spaces, but must not consist of it. A bracket
# after a backslash is part of a word, because NLTK writes brackets in this way.
_TOKEN = re.compile(r"[()]|(?=[^\S \t\r\n]*[^\s()])(?:\\[()]|[^ \t\r\n()])+")
_ESCAPED = re.compile(r"\\([()])")
# The beginning of header lines in the files of the Penn Treebank.
_HEADER = "*x*"


def read_trees(path: Path) -> Iterator[Tree]:
    """
    Read all trees of a file, plain or compressed.

    An outer bracket without a label is a phrase whose label is empty. Outside trees, lines that
    begin with ``*x*`` are skipped, because the Penn Treebank has such header lines.

    Raises `TextError` with file, line and column if brackets do not balance, a phrase has no word,
    or a word has no tag.
    """
    return parse_trees(plain_lines(Path(path)), str(path))


def read_tree_lines(path: Path) -> list[Tree | None]:
    """Read a file that has one tree on each line; None for an empty line."""
    return [parse_line(line, str(path), n) for n, line in enumerate(plain_lines(Path(path)), 1)]


def parse_lines_or_text(lines: Sequence[str], name: str) -> list[Tree | None]:
    """Read one tree per line, None for an empty line; on failure, read trees that span lines."""
    try:
        return [parse_line(line, name, number) for number, line in enumerate(lines, 1)]
    except TextError:
        return list(parse_trees(lines, name))


def parse_line(line: str, name: str, number: int = 1) -> Tree | None:
    """Read the tree of a line; None if the line is empty."""
    trees = list(parse_trees([line], name, number, unit="line"))
    if len(trees) > 1:
        raise TextError(
            f"{name} must have one tree in each line, but line {number} has {len(trees)}; write "
            "each on a line of its own."
        )
    return trees[0] if trees else None


def parse_trees(
    lines: Iterable[str], name: str, first: int = 1, unit: Literal["text", "line"] = "text"
) -> Iterator[Tree]:
    """Read trees from lines. `first`, the first line number, and `unit` are for messages."""
    open_nodes: list[_Node] = []
    for number, line in enumerate(lines, start=first):
        if not open_nodes and line.startswith(_HEADER):
            continue
        for match in _TOKEN.finditer(line):
            place = _Place(name, number, match.start() + 1)
            token = match[0]
            if token == "(":
                if len(open_nodes) > DEEPEST:
                    raise place.error(
                        f"a tree must have at most {DEEPEST} nested phrases", "one more"
                    )
                open_nodes.append(_Node(place))
            elif not open_nodes:
                what = "a closing bracket" if token == ")" else f"“{token[:40]}”"
                what += _SCORE if _NUMBER.fullmatch(token) else ""
                raise place.error("a tree must begin with an opening bracket", what)
            elif token == ")":
                tree = open_nodes.pop().tree()
                if open_nodes:
                    open_nodes[-1].add(tree, place)
                else:
                    yield tree
            else:
                open_nodes[-1].add(_without_backslashes(token), place)
    if open_nodes:
        count = "one" if len(open_nodes) == 1 else len(open_nodes)
        raise open_nodes[0].place.error(
            "every bracket of this tree must be closed" + " in its line" * (unit == "line"),
            f"the end of the {unit}, with {count} still open",
        )


def _without_backslashes(token: str) -> str:
    """Replace brackets after a backslash in a word with the Penn Treebank's escapes."""
    return escape_brackets(_ESCAPED.sub(r"\1", token)) if "\\" in token else token


class _Place(NamedTuple):
    """A position in a file, for messages."""

    name: str
    line: int
    column: int

    def error(self, must: str, text: str) -> TextError:
        """Build the error for unexpected text at this position."""
        return TextError(
            f"{self.name}, line {self.line}, column {self.column}: {must}, but got {text}; correct "
            f"the file (write {OPEN} and {CLOSE} for brackets in a word)."
        )


class _Node:
    """A bracket that is still open."""

    def __init__(self, place: _Place) -> None:
        self.place = place
        self.label: str | None = None
        self.word: str | None = None
        self.children: list[Tree] = []

    def add(self, part: str | Tree, place: _Place) -> None:
        """Add a label, a word or a child to the bracket."""
        if isinstance(part, Tree):
            if self.word is not None:
                raise place.error(_OWN_TAG, f"“{self.word[:40]}” next to another bracket")
            self.label = self.label or ""
            self.children.append(part)
        elif self.label is None and not self.children:
            self.label = part
        elif self.word is None and not self.children and self.label:
            self.word = part
        else:
            raise place.error(_OWN_TAG, f"“{part[:40]}”")

    def tree(self) -> Tree:
        """Build the tree when its bracket is closed."""
        if self.word is None and not self.children:
            raise self.place.error(
                "a bracket must hold a word or other brackets", f"“({self.label or ''})”"
            )
        return Tree(self.label or "", tuple(self.children), self.word)


_NUMBER = re.compile(r"-?\d+\.\d+")
_SCORE = " (a score, as `heedful parse predict --scores` writes it?)"
_OWN_TAG = "a word must stand alone in a bracket with its part of speech, as in (NN dog)"
