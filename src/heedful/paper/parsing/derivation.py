"""The best tree, read from a filled chart."""

from collections.abc import Sequence

import numpy as np

from heedful.paper.parsing.binarize import BinaryRules
from heedful.paper.parsing.cky import Chart
from heedful.paper.parsing.unary import symbols_on_chain
from heedful.tasks.parsing.trees.tree import Tree


def best_tree(
    grammar: BinaryRules, chart: Chart, words: Sequence[str]
) -> tuple[Tree, float] | None:
    """Return the most probable tree and its log-probability; None if there is none."""
    scores = grammar.roots + chart.scores(chart.best, 0, len(words))
    root = int(scores.argmax())
    if scores[root] == -np.inf:
        return None
    return _build(grammar, chart, words, root), float(scores[root])


def _build(grammar: BinaryRules, chart: Chart, words: Sequence[str], root: int) -> Tree:
    """Build the best tree below a symbol over all words, without recursion."""
    # 1. From the root, list the nodes, each with the list indices of its children.
    nodes: list[tuple[int, int, list[int]]] = []  # symbol, first word, children
    open_nodes = [(root, 0, len(words), -1)]
    while open_nodes:
        symbol, start, end, parent = open_nodes.pop()
        below = grammar.chains[symbol] + chart.scores(chart.made, start, end)
        chain = symbols_on_chain(grammar.first_steps, symbol, int(below.argmax()))
        for link in chain:
            if parent >= 0:
                nodes[parent][2].append(len(nodes))
            parent = len(nodes)
            nodes.append((link, start, []))
        if chain[-1] >= grammar.tags:
            children = _divide(grammar, chart, chain[-1] - grammar.tags, start, end)
            open_nodes += [(*child, parent) for child in reversed(children)]
    # 2. From the leaves, build the trees; each node comes after its parent in the list.
    trees: dict[int, Tree] = {}
    for place in reversed(range(len(nodes))):
        symbol, start, below = nodes[place]
        label = grammar.symbols[symbol].label
        if symbol < grammar.tags:
            trees[place] = Tree(label, word=words[start])
        else:
            trees[place] = Tree(label, tuple(trees.pop(child) for child in below))
    return trees[0]


def _divide(
    grammar: BinaryRules, chart: Chart, label: int, start: int, end: int
) -> list[tuple[int, int, int]]:
    """Divide a span among the children of its best rule; return each one's symbol, start, end."""
    children = grammar.children(int(chart.rule[start, end, label]))
    # best[m][k]: children up to m over words `start` to k-1; the chart does not store prefixes.
    best = np.full(end + 1, -np.inf)
    best[start] = 0.0
    places = []
    for child in children:
        ends = np.arange(start, end + 1)
        scores = np.full((end + 1, end + 1), -np.inf)  # (from, to)
        if child < grammar.tags:
            inner = ends[:-1]
            scores[inner, inner + 1] = best[inner] + chart.words[inner, child]
        else:
            table = chart.best[start:end, start : end + 1, child - grammar.tags]
            scores[start:end, start:] = best[start:end, np.newaxis] + table
        places.append(scores.argmax(axis=0))
        best = scores.max(axis=0)
    parts = []
    for child, origin in zip(reversed(children), reversed(places), strict=True):
        begin = int(origin[end])
        parts.append((child, begin, end))
        end = begin
    return parts[::-1]
