"""
Counts of the rules in a treebank, from which a PCFG gets its rules and their probabilities.

::

    (S (NP (NNS dogs)) (VP (VBP sleep)))

    S -> NP VP    NP -> NNS    VP -> VBP    NNS -> dogs    VBP -> sleep
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from heedful.tasks.parsing.trees.tree import Tree


class Symbol(NamedTuple):
    """A label of phrases, or a tag; a label and a tag with the same spelling are two symbols."""

    label: str
    is_tag: bool = False


Rule = tuple[str, tuple[Symbol, ...]]
"""The label of a phrase, and the symbols of its children."""


class TreebankRules:
    """Counts of the rules, root labels and phrase labels in trees, and the tagged words."""

    def __init__(self, trees: Iterable[Tree]) -> None:
        self.roots: Counter[Symbol] = Counter()
        self.rules: Counter[Rule] = Counter()
        self.sentences: list[list[tuple[str, str]]] = []
        """The words of each tree, with their tags."""
        for tree in trees:
            self.roots[symbol_of(tree)] += 1
            self.rules.update(rules_of(tree))
            self.sentences.append([(leaf.word or "", leaf.label) for leaf in tree.leaves()])
        self.labels: Counter[str] = Counter()
        """Counts of each phrase label."""
        for (label, _), count in self.rules.items():
            self.labels[label] += count

    @property
    def symbols(self) -> list[Symbol]:
        """All tags, then all phrase labels, both in alphabetical order."""
        tags = sorted({tag for sentence in self.sentences for _, tag in sentence})
        return [Symbol(tag, True) for tag in tags] + [
            Symbol(label) for label in sorted(self.labels)
        ]

    def rule_probability(self, rule: Rule) -> float:
        """Divide the count of a rule by the count of its label; 0 if the label is unknown."""
        return self.rules[rule] / max(1, self.labels[rule[0]])

    def root_probability(self, root: Symbol) -> float:
        """Return the fraction of the trees that have this root."""
        return self.roots[root] / max(1, self.roots.total())


def symbol_of(tree: Tree) -> Symbol:
    """Return the symbol of a node."""
    return Symbol(tree.label, tree.word is not None)


def rules_of(tree: Tree) -> list[Rule]:
    """List the rules in a tree, except the rules for words."""
    rules: list[Rule] = []
    open_nodes = [tree]
    while open_nodes:
        node = open_nodes.pop()
        if node.word is None:
            rules.append((node.label, tuple(map(symbol_of, node.children))))
            open_nodes += node.children
    return rules
