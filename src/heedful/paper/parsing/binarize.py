"""
A grammar as arrays, in which long rules are binarized from the left.

::

    NP -> DT JJ NN     becomes   DT+JJ -> DT JJ    DT+JJ+NN -> DT+JJ NN    NP -> DT+JJ+NN
    NP -> DT JJ NNS              DT+JJ+NNS -> DT+JJ NNS                    NP -> DT+JJ+NNS

Each prefix of two or more symbols of a right-hand side becomes a new symbol, which all rules with
this prefix share. A prefix is derived in one way, with probability 1; the step from prefix to
phrase has the probability of the rule. Trees therefore keep their probability.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from heedful.paper.parsing.grammar import Symbol, TreebankRules
from heedful.paper.parsing.unary import best_chains


@dataclass(frozen=True)
class BinaryRules:
    """Arrays of a grammar, indexed by tags, then labels, then prefixes of two or more symbols."""

    symbols: list[Symbol]
    tags: int
    """Number of tags, which are the first symbols."""
    last: Int[np.ndarray, " prefixes"]
    """The last symbol of each prefix, in ascending order."""
    before: Int[np.ndarray, " prefixes"]
    """The symbol or prefix before the last symbol of each prefix."""
    first: Int[np.ndarray, " prefixes"]
    """The first symbol of each prefix."""
    needs: Bool[np.ndarray, "prefixes tags"]
    """The tags within each prefix."""
    label: Int[np.ndarray, " rules"]
    """Label of each rule with at least two children: ascending indices, counted without tags."""
    prefix: Int[np.ndarray, " rules"]
    """Index of each rule's right-hand side among the prefixes."""
    weight: Float[np.ndarray, " rules"]
    """The log-probability of each rule."""
    chains: Float[np.ndarray, "symbols symbols"]
    """Log-probabilities of the best chains of unary rules."""
    first_steps: Int[np.ndarray, "symbols symbols"]
    """The next symbol on each of these chains."""
    roots: Float[np.ndarray, " symbols"]
    """Log-probability that a symbol is the root of a tree."""

    def children(self, rule: int) -> list[int]:
        """List the symbols of the right-hand side of a rule."""
        tail: list[int] = []
        place = int(self.prefix[rule]) + len(self.symbols)
        while place >= len(self.symbols):
            tail.append(int(self.last[place - len(self.symbols)]))
            place = int(self.before[place - len(self.symbols)])
        return [place, *reversed(tail)]


def binarize(grammar: TreebankRules) -> BinaryRules:
    """Convert a grammar to arrays."""
    symbols = grammar.symbols
    number = {symbol: i for i, symbol in enumerate(symbols)}
    tags = sum(symbol.is_tag for symbol in symbols)
    unary = np.full((len(symbols), len(symbols)), -np.inf)
    longer: list[tuple[int, tuple[int, ...], float]] = []
    for rule in grammar.rules:
        parent, children = number[Symbol(rule[0])], tuple(number[child] for child in rule[1])
        weight = math.log(grammar.rule_probability(rule))
        if len(children) == 1:
            unary[parent, children[0]] = weight
        else:
            longer.append((parent - tags, children, weight))
    longer.sort()
    chains, first_steps = best_chains(unary)

    starts = {children[:end] for _, children, _ in longer for end in range(2, len(children) + 1)}
    prefixes = sorted(starts, key=lambda prefix: (prefix[-1], prefix))
    place: dict[tuple[int, ...], int] = {(i,): i for i in range(len(symbols))}
    place |= {prefix: len(symbols) + i for i, prefix in enumerate(prefixes)}
    needs = np.zeros((len(prefixes), tags), dtype=bool)
    for i, prefix in enumerate(prefixes):
        needs[i, [child for child in prefix if child < tags]] = True
    roots = np.full(len(symbols), -np.inf)
    for root in grammar.roots:
        roots[number[root]] = math.log(grammar.root_probability(root))
    return BinaryRules(
        symbols=symbols,
        tags=tags,
        last=np.array([prefix[-1] for prefix in prefixes], dtype=np.intp),
        before=np.array([place[prefix[:-1]] for prefix in prefixes], dtype=np.intp),
        first=np.array([prefix[0] for prefix in prefixes], dtype=np.intp),
        needs=needs,
        label=np.array([label for label, _, _ in longer], dtype=np.intp),
        prefix=np.array([place[c] - len(symbols) for _, c, _ in longer], dtype=np.intp),
        weight=np.array([weight for _, _, weight in longer]),
        chains=chains,
        first_steps=first_steps,
        roots=roots,
    )
