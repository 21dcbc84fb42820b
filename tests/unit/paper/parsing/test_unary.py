"""Chains of unary rules."""

import itertools
import math

import numpy as np
import pytest

from heedful.paper.parsing.unary import best_chains, symbols_on_chain

pytestmark = pytest.mark.task("parsing")


def _all_chains(rules, parent, child):
    """Every chain without a symbol twice, by trying them."""
    others = [i for i in range(len(rules)) if i not in (parent, child)]
    for length in range(len(others) + 1):
        for middle in itertools.permutations(others, length):
            yield [parent, *middle, child]


def test_the_best_chain_is_the_best_of_all():
    random = np.random.default_rng(1)
    for _ in range(20):
        shares = random.random((5, 5)) * (random.random((5, 5)) < 0.5)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1)
        rules = np.log(shares, out=np.full((5, 5), -np.inf), where=shares > 0)
        best, first = best_chains(rules)
        for parent, child in itertools.permutations(range(5), 2):
            found = max(
                sum(rules[a, b] for a, b in itertools.pairwise(chain))
                for chain in _all_chains(rules, parent, child)
            )
            assert math.isclose(best[parent, child], found)
            if found > -np.inf:
                chain = symbols_on_chain(first, parent, child)
                along = sum(rules[a, b] for a, b in itertools.pairwise(chain))
                assert math.isclose(along, found)


def test_no_rule_is_needed_from_a_symbol_to_itself():
    best, first = best_chains(np.log(np.array([[0.9, 0.1], [0.5, 0.5]])))
    assert best.diagonal().tolist() == [0, 0]
    assert symbols_on_chain(first, 1, 1) == [1]


def test_a_cycle_that_never_ends_reaches_nothing_else():
    rules = np.full((3, 3), -np.inf)
    rules[0, 1] = rules[1, 0] = 0.0
    best, first = best_chains(rules)
    assert best[:2, 2].tolist() == [-np.inf, -np.inf]
    assert symbols_on_chain(first, 0, 1) == [0, 1]
