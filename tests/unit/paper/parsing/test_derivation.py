"""Trees read from charts."""

import inspect
import random
import sys

import numpy as np
import pytest

from heedful.paper.parsing.binarize import binarize
from heedful.paper.parsing.cky import fill_chart
from heedful.paper.parsing.derivation import best_tree
from heedful.paper.parsing.grammar import TreebankRules, rules_of
from tests.support.plain_pcfg import random_tree, read

pytestmark = pytest.mark.task("parsing")


def _parse(grammar, words, tags):
    binary = binarize(grammar)
    number = {symbol.label: i for i, symbol in enumerate(binary.symbols) if symbol.is_tag}
    scores = np.full((len(words), binary.tags), -np.inf)
    scores[range(len(words)), [number[tag] for tag in tags]] = 0.0
    return best_tree(binary, fill_chart(binary, scores), words)


def test_a_treebank_of_one_tree_gives_it_back():
    draw = random.Random(5)
    for length in (1, 2, 3, 7, 20):
        # every label once, so that no rule has another beside it
        tree = random_tree(draw, length)
        names = iter(f"L{i}" for i in range(1000))
        tree = _renamed(tree, names)
        found, log_probability = _parse(TreebankRules([tree]), tree.words, tree.tags)
        assert found == tree
        assert log_probability == 0.0


def _renamed(tree, names):
    children = tuple(_renamed(child, names) for child in tree.children)
    return type(tree)(next(names), children, tree.word)


def test_only_rules_of_the_treebank_are_used():
    draw = random.Random(6)
    grammar = TreebankRules([random_tree(draw, draw.randint(1, 9)) for _ in range(40)])
    for _ in range(10):
        tags = draw.choices("xyz", k=9)
        tree, _ = _parse(grammar, tuple("abcdefghi"), tags)
        assert tree.words == tuple("abcdefghi")
        assert list(tree.tags) == tags
        assert all(rule in grammar.rules for rule in rules_of(tree))


def test_deep_trees_need_no_deep_stack():
    grammar = TreebankRules(read("(S (x a) (S (x a) (x a)))"))
    words, tags = ("a",) * 150, ("x",) * 150
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    try:
        tree, _ = _parse(grammar, words, tags)
    finally:
        sys.setrecursionlimit(limit)
    assert len(tree.phrases()) == 149
    assert tree.words == words


def test_without_a_tree_there_is_none():
    grammar = TreebankRules(read("(S (x a) (y b))"))
    assert _parse(grammar, ("b", "a"), ("y", "x")) is None
