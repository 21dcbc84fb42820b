"""Random treebanks, every tree of a sentence, and the best one by a slow, plain computation."""

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction
from functools import cache

from heedful.tasks.parsing.trees.tree import Tree


def read(*lines):
    from heedful.tasks.parsing.trees.read import parse_trees

    return [*parse_trees(lines, "text")]


def random_tree(random, words, labels="SAB", tags="xyz", vocabulary="abcd"):
    """Draw a tree of as many words, with unary chains and up to four children."""
    if words == 1 and random.random() < 0.6:
        return Tree(random.choice(tags), word=random.choice(vocabulary))
    parts = min(words, random.choice((1, 2, 2, 3, 4)))
    cuts = [0, *sorted(random.sample(range(1, words), parts - 1)), words]
    sizes = [end - start for start, end in itertools.pairwise(cuts)]
    children = (random_tree(random, size, labels, tags, vocabulary) for size in sizes)
    return Tree(random.choice(labels), tuple(children))


def nodes(tree):
    return [tree, *itertools.chain.from_iterable(map(nodes, tree.children))]


class PlainGrammar:
    """Relative frequencies of a treebank as fractions, of every node: words are children too."""

    def __init__(self, trees):
        self.roots = Counter(self.symbol(tree) for tree in trees)
        self.counts = Counter(
            (self.symbol(node), self.children(node)) for tree in trees for node in nodes(tree)
        )
        self.totals = Counter()
        for (parent, _), count in self.counts.items():
            self.totals[parent] += count
        self.expansions = defaultdict(list)
        for parent, children in self.counts:
            self.expansions[parent].append(children)

    @staticmethod
    def symbol(node):
        return (node.label, node.word is not None)

    def children(self, node):
        return (node.word,) if node.word is not None else tuple(map(self.symbol, node.children))

    def rule(self, parent, children):
        return Fraction(self.counts[parent, children], max(1, self.totals[parent]))

    def probability(self, tree):
        """Multiply the root and all rules."""
        rules = (self.rule(self.symbol(node), self.children(node)) for node in nodes(tree))
        return math.prod(rules, start=Fraction(self.roots[self.symbol(tree)], self.roots.total()))

    def trees(self, words, longest):
        """List all trees of a sentence whose chains have at most as many unary rules."""
        words = tuple(words)

        @cache
        def under(symbol, start, end, chain):
            label, is_tag = symbol
            if is_tag:
                is_word = end == start + 1 and self.counts[symbol, words[start:end]]
                return [Tree(label, word=words[start])] if is_word else []
            found = []
            for children in self.expansions[symbol]:
                link = chain + 1 if len(children) == 1 else 0
                if link <= longest:
                    found += [Tree(label, each) for each in forest(children, start, end, link)]
            return found

        def forest(children, start, end, chain):
            if len(children) == 1:
                return [(tree,) for tree in under(children[0], start, end, chain)]
            return [
                (tree, *rest)
                for middle in range(start + 1, end - len(children) + 2)
                for tree in under(children[0], start, middle, 0)
                for rest in forest(children[1:], middle, end, 0)
            ]

        return [tree for root in self.roots for tree in under(root, 0, len(words), 0)]

    def best_probability(self, words):
        """Find the probability of the best tree, span by span, without binarization."""
        best = defaultdict(Fraction)  # of (symbol, start, end)
        for width in range(1, len(words) + 1):
            for start in range(len(words) - width + 1):
                end = start + width
                for parent, options in self.expansions.items():
                    for children in options:
                        if width == 1 and children == (words[start],):
                            inside = Fraction(1)
                        elif len(children) > 1:
                            inside = self._best_division(best, children, start, end)
                        else:
                            continue
                        value = inside * self.rule(parent, children)
                        best[parent, start, end] = max(best[parent, start, end], value)
                self._relax(best, start, end)
        whole = (
            Fraction(count, self.roots.total()) * best[root, 0, len(words)]
            for root, count in self.roots.items()
        )
        return max(whole)

    def _best_division(self, best, children, start, end):
        if len(children) == 1:
            return best[children[0], start, end]
        return max(
            (
                best[children[0], start, middle]
                * self._best_division(best, children[1:], middle, end)
                for middle in range(start + 1, end)
            ),
            default=Fraction(0),
        )

    def _relax(self, best, start, end):
        """Apply unary rules until nothing gets better."""
        changed = True
        while changed:
            changed = False
            for parent, options in self.expansions.items():
                for children in options:
                    if len(children) == 1 and not isinstance(children[0], str):
                        value = best[children[0], start, end] * self.rule(parent, children)
                        if value > best[parent, start, end]:
                            best[parent, start, end], changed = value, True
