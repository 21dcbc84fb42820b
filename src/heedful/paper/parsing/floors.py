"""
Baselines: trees that are built without parsing, with which parsers are compared.

::

    flat              (S the old dog sleeps .)
    right-branching   (S the (ADJP old (NP dog sleeps)) .)

The root gets the most frequent label of roots. Below the root, the first word of a phrase in the
right-branching tree determines the phrase's label. It is the most frequent label of training
phrases that begin with this word and have at least two words, roots excluded. If no such phrase
begins with the word, the most frequent label of all these phrases is used. Final punctuation is a
child of the root.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from heedful.errors import TextError
from heedful.paper.parsing.grammar import TreebankRules
from heedful.paper.parsing.lexicon import TagLexicon
from heedful.tasks.parsing.trees.read import DEEPEST
from heedful.tasks.parsing.trees.tree import Tree, flat_tree


class TreeFloors:
    """Flat and right-branching trees, with the most frequent tags and labels in training."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        rules = TreebankRules(trees)
        roots = Counter({root.label: n for root, n in rules.roots.items() if not root.is_tag})
        if not roots:
            raise TextError(
                "a treebank must have at least one phrase, but this one has none; give another "
                "treebank."
            )
        self._root = _commonest(roots)
        tags = [symbol.label for symbol in rules.symbols if symbol.is_tag]
        self._lexicon = TagLexicon(rules.sentences, tags)
        self._after: dict[str, Counter[str]] = defaultdict(Counter)
        self._labels: Counter[str] = Counter()
        for word, label in _first_words(trees):
            self._after[word][label] += 1
            self._labels[label] += 1

    def flat(self, words: Sequence[str]) -> Tree:
        """Build a tree in which one phrase contains all words."""
        return flat_tree(tuple(words), self._lexicon.likeliest(words), self._root)

    def right_branching(self, words: Sequence[str]) -> Tree:
        """Build a tree in which each word begins a phrase that contains all words after it."""
        leaves = self.flat(words).children
        end = len(words)
        while end and not any(map(str.isalnum, words[end - 1])):
            end -= 1
        last = min(end - 1, DEEPEST)  # at the maximum depth, one phrase contains all later words
        inner: tuple[Tree, ...] = leaves[max(0, last) : end]
        for place in reversed(range(1, last)):
            inner = (Tree(self._label(words[place]), (leaves[place], *inner)),)
        first = leaves[: min(1, end - 1)] if end else ()
        return Tree(self._root, (*first, *inner, *leaves[end:]))

    def _label(self, word: str) -> str:
        """Guess the label of a phrase from its first word."""
        return _commonest(self._after.get(word) or self._labels or Counter([self._root]))


def _commonest(counts: Counter[str]) -> str:
    """Return the most frequent label; in a tie, the first label in alphabetical order."""
    return min(counts, key=lambda label: (-counts[label], label))


def _first_words(trees: Iterable[Tree]) -> Iterable[tuple[str, str]]:
    """List the first word and label of each phrase with at least two words, roots excluded."""
    for tree in trees:
        words = tree.words
        for label, start, end in tree.phrases()[1:]:
            if end > start + 1:
                yield words[start], label
