"""
Viterbi parsing by the CKY algorithm, one row of the chart at a time.

::

    chart[i, j]: words i to j-1         first word  last   the row of word i, from left to right
                                            i        j     ┌──────┬──────┬─────────┐
    prefix(i, j) = max over k of                           │ i,i+1│ i,i+2│ …  i,n  │
        before(i, k) + last symbol(k, j)                   └──────┴──────┴─────────┘

Rows are filled from the last word to the first. Prefixes are needed only in their own row. So the
memory for n words grows with n² times the number of labels plus n times the number of prefixes.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int

from heedful.paper.parsing.binarize import BinaryRules

_NONE = -np.inf


@dataclass(frozen=True)
class Chart:
    """Best log-probabilities of the labels over each span, with the rules that give them."""

    words: Float[np.ndarray, "words tags"]
    """Log-probabilities of each word given each tag."""
    made: Float[np.ndarray, "words ends labels"]
    """Best log-probabilities if the topmost rule has two children or more."""
    best: Float[np.ndarray, "words ends labels"]
    """Best log-probabilities of all trees, unary rules included."""
    rule: Int[np.ndarray, "words ends labels"]
    """The topmost rule in `made`."""

    def scores(
        self, of_labels: Float[np.ndarray, "words ends labels"], start: int, end: int
    ) -> Float[np.ndarray, " symbols"]:
        """Prepend the tags, which cover one word, to the labels of `made` or `best`."""
        tags = self.words[start]
        if end > start + 1:
            tags = np.full_like(tags, _NONE)
        return np.concatenate([tags, of_labels[start, end]])


def fill_chart(grammar: BinaryRules, words: Float[np.ndarray, "words tags"]) -> Chart:
    """Find the best log-probability of every label over every span."""
    count, tags = len(words), grammar.tags
    shape = (count, count + 1, len(grammar.symbols) - tags)
    chart = Chart(words, np.full(shape, _NONE), np.full(shape, _NONE), np.zeros(shape, np.int32))
    # (labels, tags) and (labels, labels)
    over_tags, over_labels = grammar.chains[tags:, :tags], grammar.chains[tags:, tags:]
    possible = np.zeros(tags, dtype=bool)
    for i in reversed(range(count)):
        possible |= words[i] > _NONE
        chart.best[i, i + 1] = (over_tags + words[i]).max(axis=1, initial=_NONE)
        row = _Row(grammar, chart, i, possible)
        row.add(i + 1)
        for j in range(i + 2, count + 1):
            prefixes = row.prefixes(j)
            row.make_labels(j, prefixes)
            chart.best[i, j] = (over_labels + chart.made[i, j]).max(axis=1, initial=_NONE)
            row.add(j, prefixes)
    return chart


class _Row:
    """The prefixes that begin at one word, except those that the sentence cannot contain."""

    def __init__(self, grammar: BinaryRules, chart: Chart, i: int, possible: np.ndarray) -> None:
        self.chart, self.i, self.tags = chart, i, grammar.tags
        count = len(chart.words)
        # 1. Keep the prefixes that can begin with word i and whose tags occur from word i on.
        starts = np.concatenate([chart.words[i] > _NONE, np.ones(chart.best.shape[2], bool)])
        is_kept = starts[grammar.first] & ~grammar.needs[:, ~possible].any(axis=1)
        self.kept = np.flatnonzero(is_kept)
        self.last = grammar.last[self.kept]
        # 2. Convert the symbol or prefix before each kept prefix to an index among symbols and kept
        # prefixes. A prefix before a kept prefix is also kept.
        symbols = len(grammar.symbols)
        place = np.concatenate([np.arange(symbols), symbols + np.cumsum(is_kept) - 1])
        self.before = place[grammar.before[self.kept]]
        # 3. Group prefixes by their last symbol; prefixes that end in a tag come first.
        self.tag_end = int(np.searchsorted(self.last, self.tags))
        bounds = np.searchsorted(self.last, np.arange(self.tags, symbols + 1))
        self.by_label = [
            (label, slice(start, end))
            for label, (start, end) in enumerate(pairwise(bounds))
            if start < end
        ]
        # 4. Group the rules whose prefix is kept by their label.
        rules = np.flatnonzero(is_kept[grammar.prefix])
        self.rules, self.weight = rules, grammar.weight[rules]
        self.prefix = place[symbols + grammar.prefix[rules]] - symbols
        bounds = np.searchsorted(grammar.label[rules], np.arange(symbols - self.tags + 1))
        self.rules_of_label = [
            (label, start, end)
            for label, (start, end) in enumerate(pairwise(bounds))
            if start < end
        ]
        # 5. left[k]: log-probabilities of the symbol or prefix before each prefix, over words i to
        # k-1.
        self.left = np.full((count + 1, len(self.kept)), _NONE)

    def add(self, j: int, prefixes: Float[np.ndarray, " prefixes"] | None = None) -> None:
        """Store symbols and prefixes over words i to j-1, which later words may extend."""
        if prefixes is None:
            prefixes = np.full(len(self.kept), _NONE)
        symbols = self.chart.scores(self.chart.best, self.i, j)
        self.left[j] = np.concatenate([symbols, prefixes])[self.before]

    def prefixes(self, j: int) -> Float[np.ndarray, " prefixes"]:
        """Find the best log-probability of each prefix over words i to j-1."""
        i, end = self.i, self.tag_end
        best = np.empty(len(self.kept))
        # A tag covers one word, so the span can be divided at only one position.
        best[:end] = self.left[j - 1, :end] + self.chart.words[j - 1][self.last[:end]]
        right = self.chart.best[i + 1 : j, j]  # (places, labels)
        for label, group in self.by_label:
            # (places, group) + (places, 1) -> (group)
            best[group] = (self.left[i + 1 : j, group] + right[:, [label]]).max(axis=0)
        return best

    def make_labels(self, j: int, prefixes: Float[np.ndarray, " prefixes"]) -> None:
        """Find the best rule of each label over words i to j-1."""
        scores = prefixes[self.prefix] + self.weight
        for label, start, end in self.rules_of_label:
            best = start + int(scores[start:end].argmax())
            self.chart.made[self.i, j, label] = scores[best]
            self.chart.rule[self.i, j, label] = self.rules[best]
