"""
Trees drawn as text for the terminal.

::

    gold: 1 of 7 phrases missed (-)   predicted: all 6 phrases right
      S                                 S
      ├─ NP  PRP she                    ├─ NP  PRP she
      └─ VP  VBD saw                    └─ VP  VBD saw
    -    └─ NP                             ├─ NP  DT the  NN dog
            ├─ NP  DT the  NN dog          └─ PP  IN with
            └─ PP  IN with                    └─ NP  PRP us
               └─ NP  PRP us

The first words of a phrase are on its line if they fit.
"""

import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, zip_longest

from heedful.tasks.parsing.trees.differences import TreeDifference
from heedful.tasks.parsing.trees.tree import Tree, unescape_brackets
from heedful.visualise.figure_files import printable

MISSED, WRONG = "-", "+"
"""Signs of phrases that only the gold tree has, and of phrases that only the predicted tree has."""
_COLORS = {MISSED: "\x1b[36m", WRONG: "\x1b[33m"}
_PLAIN = "\x1b[0m"
# The prefixes of a line: for a child that is not the last, for lines below that child, for the last
# child, and for lines below the last child. Deep trees use the narrower prefixes.
_BRANCHES = (("├─ ", "│  ", "└─ ", "   "), ("├ ", "│ ", "└ ", "  "), ("├", "│", "└", " "))
_JOINERS = "\u200c\u200d"
_WITHOUT_WIDTH = ("Mn", "Me", "Cf")
_GAP = 3


@dataclass(frozen=True)
class _TextLine:
    """A line of a drawn tree."""

    text: str
    phrase: int | None = None
    """Index of the phrase that the line shows; None for a word."""


def draw_tree(tree: Tree, width: int = 80) -> list[str]:
    """Draw a tree in lines that are at most `width` columns wide."""
    return [cut(line.text, width) for line in _layout(tree, width)]


def draw_pair(
    gold: Tree,
    predicted: Tree | None,
    difference: TreeDifference,
    width: int = 80,
    *,
    color: bool = False,
) -> list[str]:
    """Draw a gold and a predicted tree, side by side if they fit, and mark differing phrases."""
    headings = difference.headings(f" ({MISSED})", f" ({WRONG})")

    def draw(most: int, branches: Sequence[tuple[str, ...]]) -> list[list[str]]:
        """Draw both trees below their headings."""
        trees = (
            _draw_marked(gold, difference.missed, MISSED, most, branches),
            _draw_marked(predicted, difference.wrong, WRONG, most, branches),
        )
        return [[heading, *tree] for heading, tree in zip(headings, trees, strict=True)]

    half = (width - _GAP) // 2
    left, right = draw(half, _BRANCHES[:1])
    if all(columns(line) <= half for line in (*left, *right)):
        wide = max(map(columns, left)) + _GAP
        rows = [
            _color(left_line + " " * (wide - columns(left_line)), color) + _color(right_line, color)
            for left_line, right_line in zip_longest(left, right, fillvalue="")
        ]
        return [row.rstrip() for row in rows]
    lines = [line for part in draw(width, _BRANCHES) for line in part]
    return [_color(cut(line, width), color) for line in lines]


def _draw_marked(
    tree: Tree | None,
    marked: Collection[int],
    sign: str,
    width: int,
    branches: Sequence[tuple[str, ...]],
) -> Iterator[str]:
    """Draw a tree with a sign before each marked phrase."""
    if tree is not None:
        for line in _layout(tree, width - 2, branches):
            yield f"{sign if line.phrase in marked else ' '} {line.text}"


def _color(line: str, color: bool) -> str:
    """Color a line that has a sign."""
    before = _COLORS.get(line[:1]) if color else None
    return f"{before}{line}{_PLAIN}" if before else line


def _layout(
    tree: Tree, width: int, branches: Sequence[tuple[str, ...]] = _BRANCHES
) -> list[_TextLine]:
    """Draw a tree with the widest branches that fit, or with the narrowest if none fits."""
    for branch in branches:
        lines = list(_node(tree, "", "", width, branch, count()))
        if all(columns(line.text) <= width for line in lines):
            break
    return lines


def _node(
    node: Tree, first: str, rest: str, width: int, branch: tuple[str, ...], numbers: Iterator[int]
) -> Iterator[_TextLine]:
    """
    Draw a subtree.

    `first`, `rest`: prefixes of the first line, and of all lines below it.
    """
    if node.word is not None:
        yield _TextLine(f"{first}{_leaf(node)}")
        return
    number, line, words = next(numbers), f"{first}{escape_unprintable(node.label)}", 0
    for child in node.children:
        longer = f"{line}  {_leaf(child)}"
        if child.word is None or columns(longer) > width:
            break
        line, words = longer, words + 1
    yield _TextLine(line, number)
    below = node.children[words:]
    for left, child in enumerate(below, start=1 - len(below)):
        before, after = branch[:2] if left else branch[2:]
        yield from _node(child, rest + before, rest + after, width, branch, numbers)


def _leaf(node: Tree) -> str:
    """Format a word with its tag before it."""
    word = unescape_brackets(node.word or "")
    return f"{escape_unprintable(node.label)} {escape_unprintable(word)}"


def escape_unprintable(text: str) -> str:
    """Escape control characters, but not the joiners that some scripts and emoji need."""
    return "".join(c if c in _JOINERS else printable(c) for c in text)


def columns(text: str) -> int:
    """Count the terminal columns that a text needs."""
    return sum(map(_columns, text))


def _columns(letter: str) -> int:
    """Count the terminal columns of a character."""
    if unicodedata.category(letter) in _WITHOUT_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Cut a text that is too wide."""
    if columns(text) <= width:
        return text
    prefix, room = "", width - 1
    for letter in text:
        room -= _columns(letter)
        if room < 0:
            break
        prefix += letter
    return prefix + "…"
