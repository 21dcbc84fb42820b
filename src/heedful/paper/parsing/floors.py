"""
Floors: the scores of trees that are drawn without parsing.

::

    flat              (S the old dog sleeps .)
    right-branching   (S the (ADJP old (NP dog sleeps)) .)

The root gets the label that is most frequent at roots. Below the root, a phrase of the
right-branching tree gets a label by its first word. This is the commonest label of training phrases
that begin with this word and have two words or more, roots aside. An unknown first word gives the
commonest label of all. Final punctuation is a child of the root.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from heedful.errors import TextError
from heedful.paper.parsing.grammar import TreebankRules
from heedful.paper.parsing.lexicon import TagLexicon
from heedful.tasks.parsing.trees.read import DEEPEST
from heedful.tasks.parsing.trees.tree import Tree, flat_tree


class TreeFloors:
    """Flat and right-branching trees, with tags and labels that are commonest in training."""

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
        """Put all words below one phrase."""
        return flat_tree(tuple(words), self._lexicon.likeliest(words), self._root)

    def right_branching(self, words: Sequence[str]) -> Tree:
        """Let each word but the last begin a phrase that holds all words after it."""
        leaves = self.flat(words).children
        end = len(words)
        while end and not any(map(str.isalnum, words[end - 1])):
            end -= 1
        last = min(end - 1, DEEPEST)  # if the tree would be too deep, one phrase holds the rest
        inner: tuple[Tree, ...] = leaves[max(0, last) : end]
        for place in reversed(range(1, last)):
            inner = (Tree(self._label(words[place]), (leaves[place], *inner)),)
        first = leaves[: min(1, end - 1)] if end else ()
        return Tree(self._root, (*first, *inner, *leaves[end:]))

    def _label(self, word: str) -> str:
        """Guess the label of a phrase from its first word."""
        return _commonest(self._after.get(word) or self._labels or Counter([self._root]))


def _commonest(counts: Counter[str]) -> str:
    """Return the commonest label; in a tie, the first in alphabetical order."""
    return min(counts, key=lambda label: (-counts[label], label))


def _first_words(trees: Iterable[Tree]) -> Iterable[tuple[str, str]]:
    """List the phrases of two words or more, roots aside: first word, label."""
    for tree in trees:
        words = tree.words
        for label, start, end in tree.phrases()[1:]:
            if end > start + 1:
                yield words[start], label
