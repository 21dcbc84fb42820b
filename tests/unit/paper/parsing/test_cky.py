"""The chart of the parser, beside a plain computation with fractions."""

import math
import random

import numpy as np
import pytest

from heedful.paper.parsing.binarize import binarize
from heedful.paper.parsing.cky import fill_chart
from heedful.paper.parsing.grammar import TreebankRules
from heedful.paper.parsing.pcfg import Pcfg
from tests.support.plain_pcfg import PlainGrammar, random_tree, read

pytestmark = pytest.mark.task("parsing")


@pytest.mark.parametrize("seed", range(12))
def test_random_grammars_find_the_best_probability(seed):
    draw = random.Random(seed)
    trees = [random_tree(draw, draw.randint(1, 8)) for _ in range(draw.choice((5, 10, 30)))]
    plain, parser = PlainGrammar(trees), Pcfg(trees, rare=0)
    parsed = 0
    for length in (1, 2, 3, 5, 8):
        words = draw.choices("abcd", k=length)
        best = plain.best_probability(words)
        found = parser.parse(words)
        assert math.isclose(found.log_probability, math.log(best) if best else -math.inf)
        if best:
            assert math.isclose(plain.probability(found.tree), best)
            parsed += 1
    assert parsed


def test_spans_hold_what_the_words_allow():
    grammar = binarize(TreebankRules(read("(A (x a) (y b) (B (x c)))")))
    words = np.array([[0.5, 0], [0, 0.25], [1, 0]])
    words = np.log(words, out=np.full_like(words, -np.inf), where=words > 0)
    chart = fill_chart(grammar, words)
    a, b = 0, 1
    assert np.exp(chart.best[0, 3, a]) == pytest.approx(0.125)
    assert np.exp(chart.best[[0, 1, 2], [1, 2, 3], b]) == pytest.approx([0.5, 0, 1])
    assert np.exp(chart.best[0, 2]).tolist() == [0, 0]
    # 1. A label over one word comes of unary rules alone. 2. Tags hold one word.
    assert chart.made[2, 3, b] == -np.inf
    assert np.exp(chart.scores(chart.best, 0, 1)) == pytest.approx([0.5, 0, 0, 0.5])
    assert np.exp(chart.scores(chart.best, 0, 3)) == pytest.approx([0, 0, 0.125, 0])
