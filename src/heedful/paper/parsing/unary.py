"""The best chains of unary rules, which may form cycles."""

import numpy as np
from jaxtyping import Float, Int

Chains = tuple[Float[np.ndarray, "parent child"], Int[np.ndarray, "parent child"]]
"""Log-probability of the best chain between two symbols, and the next symbol on it."""


def best_chains(rules: Float[np.ndarray, "symbols symbols"]) -> Chains:
    """Find the best chain between any two symbols, from log-probabilities of unary rules."""
    # The empty chain from a symbol to itself has probability 1. No rule has a larger probability,
    # so a cycle never improves a chain. The Floyd-Warshall algorithm is therefore exact: it allows
    # one more symbol within chains at each step.
    count = len(rules)
    best = rules.copy()
    first = np.tile(np.arange(count), (count, 1))
    np.fill_diagonal(best, 0.0)
    for middle in range(count):
        through = best[:, [middle]] + best[middle]  # (parent, 1) + (child)
        is_better = through > best
        best[is_better] = through[is_better]
        first = np.where(is_better, first[:, [middle]], first)
    return best, first


def symbols_on_chain(first: Int[np.ndarray, "parent child"], parent: int, child: int) -> list[int]:
    """List the symbols of the best chain, both ends included."""
    chain = [parent]
    while chain[-1] != child:
        chain.append(int(first[chain[-1], child]))
    return chain
