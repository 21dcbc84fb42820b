"""
Trees in the form for training and scoring parsers: no traces, no function tags, no outer bracket.

::

    ( (S (NP-SBJ-1 (NNS dogs)) (VP (VBP sleep) (S (NP (-NONE- *-1))))))
    (S (NP (NNS dogs)) (VP (VBP sleep)))
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from heedful.tasks.parsing.trees.tree import Tree
from heedful.text.nouns import count_noun

TRACE = "-NONE-"
"""The tag of empty nodes."""
OUTER = ("", "TOP", "ROOT")
"""Labels of the bracket around a whole tree."""
_FUNCTION_TAG = re.compile(r"(?<=.)[-=|].*", re.S)


@dataclass
class TreeCleaning:
    """Counts of what cleaning has kept in trees and removed from them."""

    trees: int = 0
    words: int = 0
    """Number of words that remain."""
    traces: int = 0
    """Number of empty nodes that were removed."""
    function_tags: int = 0
    """Number of labels from which function tags or indices were cut."""
    empty: list[int] = field(default_factory=list)
    """Positions, from 1, of the trees without a word, which were left out."""

    def summary(self) -> str:
        """Describe in one line what remains, and what was removed."""
        parts = [f"{count_noun(self.trees, 'tree')} with {count_noun(self.words, 'word')}"]
        if self.traces:
            parts.append(f"{count_noun(self.traces, 'empty node')} left out")
        if self.function_tags:
            parts.append(f"function tags cut from {count_noun(self.function_tags, 'label')}")
        if self.empty:
            parts.append(self.left_out())
        return "; ".join(parts)

    def left_out(self) -> str:
        """Name the trees without a word."""
        numbers = ", ".join(map(str, self.empty[:5])) + ", …" * (len(self.empty) > 5)
        return (
            f"{count_noun(len(self.empty), 'tree')} left out for having no words (number {numbers})"
        )


def clean_trees(trees: Iterable[Tree], report: TreeCleaning | None = None) -> list[Tree]:
    """Clean trees, and leave out trees without a word."""
    report = report or TreeCleaning()
    cleaned = []
    for number, tree in enumerate(trees, start=1):
        clean = clean_tree(tree, report)
        if clean is None:
            report.empty.append(number)
        else:
            cleaned.append(clean)
            report.trees += 1
            report.words += len(clean.words)
    return cleaned


def clean_tree(tree: Tree, report: TreeCleaning | None = None) -> Tree | None:
    """Clean one tree; None if it has no word."""
    report = report or TreeCleaning()
    clean = _clean(tree, report)
    return clean and without_outer(clean)


def without_outer(tree: Tree) -> Tree:
    """Remove the outer bracket of a tree."""
    while tree.label in OUTER and len(tree.children) == 1:
        tree = tree.children[0]
    if not tree.label:  # several trees in one outer bracket
        tree = Tree("TOP", tree.children)
    return tree


def bare_label(label: str) -> str:
    """
    Cut function tags and indices from a label.

    >>> bare_label("NP-SBJ-1"), bare_label("PRT|ADVP"), bare_label("-LRB-")
    ('NP', 'PRT', '-LRB-')
    """
    return label if label.startswith("-") else _FUNCTION_TAG.sub("", label)


def _clean(tree: Tree, report: TreeCleaning) -> Tree | None:
    """Clean a subtree; None if it has no word."""
    if tree.word is not None:
        if tree.label == TRACE:
            report.traces += 1
            return None
        return tree
    children = tuple(child for child in (_clean(c, report) for c in tree.children) if child)
    if not children:
        return None
    label = bare_label(tree.label)
    report.function_tags += label != tree.label
    return Tree(label, children)
