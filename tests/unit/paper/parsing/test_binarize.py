"""Long rules cut into rules of two."""

import math
import random

import numpy as np
import pytest

from heedful.paper.parsing.binarize import binarize
from heedful.paper.parsing.grammar import TreebankRules
from tests.support.plain_pcfg import random_tree, read

pytestmark = pytest.mark.task("parsing")

TREES = ("(A (x a) (y b) (z c))", "(A (x a) (y b) (x d))", "(A (B (x a)) (x b))", "(B (x a) (y b))")


def test_rules_that_begin_alike_share_prefixes():
    found = binarize(TreebankRules(read(*TREES)))
    # x+y, x+y+z, x+y+x, B+x
    assert len(found.last) == 4
    assert len(found.prefix) == 4


def test_every_rule_keeps_its_children_and_probability():
    draw = random.Random(3)
    grammar = TreebankRules([random_tree(draw, draw.randint(1, 9)) for _ in range(60)])
    found = binarize(grammar)
    rules = {}
    for i, weight in enumerate(found.weight):
        children = tuple(found.symbols[child] for child in found.children(i))
        rules[found.symbols[found.tags + found.label[i]].label, children] = weight
    longer = [rule for rule in grammar.rules if len(rule[1]) > 1]
    assert {*rules} == {*longer}
    assert all(math.isclose(rules[r], math.log(grammar.rule_probability(r))) for r in longer)


def test_prefixes_know_their_tags_and_ends():
    found = binarize(TreebankRules(read(*TREES)))
    names = [symbol.label for symbol in found.symbols]
    assert names == ["x", "y", "z", "A", "B"]
    assert (np.diff(found.last) >= 0).all()
    needs = {"".join(np.array(names[:3])[row]) for row in found.needs}
    assert needs == {"x", "xy", "xyz"}
    assert sorted(names[first] for first in found.first) == ["B", "x", "x", "x"]


def test_a_treebank_of_tagged_words_has_no_rules():
    found = binarize(TreebankRules(read("(x a)", "(y b)")))
    assert found.needs.shape == (0, 2)
    assert np.exp(found.roots).tolist() == [0.5, 0.5]
