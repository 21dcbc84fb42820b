"""
A parser with a probabilistic context-free grammar (PCFG) that is read from a treebank.

The probability of a rule is its relative frequency among the rules with the same left-hand side;
only words are smoothed. This is the simplest treebank parser and the usual baseline (Charniak 1996,
“Tree-bank Grammars”; Klein and Manning 2003, “Accurate Unlexicalized Parsing”, Figure 2). Parent
annotation improves it.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from heedful.errors import TextError
from heedful.paper.parsing.binarize import binarize
from heedful.paper.parsing.cky import fill_chart
from heedful.paper.parsing.derivation import best_tree
from heedful.paper.parsing.grammar import TreebankRules, rules_of, symbol_of
from heedful.paper.parsing.lexicon import TagLexicon
from heedful.paper.parsing.parent_annotation import annotate_parents, remove_parents
from heedful.tasks.parsing.trees.tree import Tree, flat_tree


class PcfgParse(NamedTuple):
    """A tree and its log-probability."""

    tree: Tree
    log_probability: float
    """-inf if the grammar has no tree for the sentence; then `tree` is flat."""


class Pcfg:
    """A grammar and its parser."""

    def __init__(self, trees: Iterable[Tree], rare: int = 1, parents: bool = False) -> None:
        """
        Count the rules of trees.

        `rare`: maximum count of a word that is replaced by its class. `parents`: whether the rules
        of a phrase also depend on the label of its parent.
        """
        self._parents = parents
        self.rules = TreebankRules(map(annotate_parents, trees) if parents else trees)
        if not self.rules.sentences:
            raise TextError(
                "a treebank must have at least one tree, but this one has none; give another "
                "treebank."
            )
        tags = [symbol.label for symbol in self.rules.symbols if symbol.is_tag]
        self.lexicon = TagLexicon(self.rules.sentences, tags, rare)
        self._binary = binarize(self.rules)
        phrases = [root for root in self.rules.roots if not root.is_tag]
        root = max(phrases, key=lambda root: self.rules.roots[root]).label if phrases else "S"
        self._root = remove_parents(Tree(root)).label

    def parse(self, words: Sequence[str], tags: Sequence[str] | None = None) -> PcfgParse:
        """
        Find the most probable tree of a sentence.

        `tags`: the tag of each word; if given, the log-probability does not include the words. If
        the grammar has no tree for the sentence, one phrase contains all words.
        """
        scores = self._tag_scores(words, tags)
        best = best_tree(self._binary, fill_chart(self._binary, scores), words)
        if best is not None:
            tree, log_probability = best
            return PcfgParse(remove_parents(tree), log_probability)
        tags = self.lexicon.likeliest(words) if tags is None else tags
        return PcfgParse(flat_tree(tuple(words), tuple(tags), self._root), -math.inf)

    def log_probability(self, tree: Tree) -> float:
        """Return the log-probability of a tree."""
        tree = annotate_parents(tree) if self._parents else tree
        leaves = [*tree.leaves()]
        scores = self.lexicon.log_probabilities(tree.words)
        number = {tag: i for i, tag in enumerate(self.lexicon.tags)}
        factors = [self.rules.root_probability(symbol_of(tree))]
        factors += map(self.rules.rule_probability, rules_of(tree))
        if not all(factors) or any(leaf.label not in number for leaf in leaves):
            return -math.inf
        words = sum(scores[i, number[leaf.label]] for i, leaf in enumerate(leaves))
        return float(words) + sum(map(math.log, factors))

    def _tag_scores(self, words: Sequence[str], tags: Sequence[str] | None) -> np.ndarray:
        """Return the log-probability of each word given each tag."""
        if not words:
            raise TextError("a sentence must have at least one word, but has none; leave it out.")
        if tags is None:
            return self.lexicon.log_probabilities(words)
        if len(tags) != len(words):
            raise TextError(
                f"each word must have one tag, but got {len(tags)} tags for {len(words)} words; "
                "give one tag for each word."
            )
        is_tag = np.array(self.lexicon.tags) == np.array(tags)[:, np.newaxis]  # (words, tags)
        return np.where(is_tag, 0.0, -np.inf)
