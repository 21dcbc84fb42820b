"""
Lexical probabilities P(word | tag), with classes for words that are rare or unknown.

A word that occurs at most `rare` times in training adds its counts to its class. Such words, and
words that do not occur in training, have the probability of their class. Classes use the features
of the Berkeley and Stanford parsers: capitals, digits, hyphens and the suffix.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from jaxtyping import Float

_ENDINGS = ("ing", "ion", "est", "ity", "ed", "er", "ly", "al", "y")
_EXACT = "exact"  # ends the narrowest class; a class without it includes all its extensions


class TagLexicon:
    """Probabilities of words given their tags, by relative frequency."""

    def __init__(
        self, sentences: Iterable[Sequence[tuple[str, str]]], tags: Sequence[str], rare: int = 1
    ) -> None:
        self.tags = list(tags)
        sentences = list(sentences)
        self._frequency = Counter(word for sentence in sentences for word, _ in sentence)
        self._rare = rare
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        # separate from words, so that no word is mistaken for a class
        class_counts: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        self.tag_counts: Counter[str] = Counter()
        for sentence in sentences:
            for place, (word, tag) in enumerate(sentence):
                self.tag_counts[tag] += 1
                if self._is_rare(word):
                    for name in self._classes(word, place):
                        class_counts[name][tag] += 1
                else:
                    counts[word][tag] += 1
        self._words = {word: self._logarithms(by_tag) for word, by_tag in counts.items()}
        self._of_class = {name: self._logarithms(by_tag) for name, by_tag in class_counts.items()}

    def log_probabilities(self, words: Sequence[str]) -> Float[np.ndarray, "words tags"]:
        """Return log-probabilities of words given tags; -inf if a word cannot have a tag."""
        scores = np.full((len(words), len(self.tags)), -np.inf)
        for place, word in enumerate(words):
            if self._is_rare(word):
                # A class that does not occur in training is replaced by the next wider class.
                known = (name for name in self._classes(word, place) if name in self._of_class)
                if (name := next(known, None)) is not None:
                    scores[place] = self._of_class[name]
            else:
                scores[place] = self._words[word]
        return scores

    def likeliest(self, words: Sequence[str]) -> tuple[str, ...]:
        """Choose the most probable tag of each word; if no tag is possible, the most frequent."""
        totals = np.array([self.tag_counts[tag] for tag in self.tags], dtype=float)
        joint = np.exp(self.log_probabilities(words)) * totals
        joint += 1e-12 * totals  # if no tag is possible, the most frequent tag is chosen
        return tuple(self.tags[best] for best in joint.argmax(axis=1))

    def _is_rare(self, word: str) -> bool:
        """Tell whether a word has the probability of its class."""
        return self._frequency[word] <= self._rare

    def _classes(self, word: str, place: int) -> Iterator[tuple[str, ...]]:
        """List the classes of a word, the narrowest first."""
        lower = word.lower()
        known = place == 0 and lower != word and self._frequency[lower] > self._rare
        parts = word_class(word, place == 0, known)
        yield (*parts, _EXACT)
        for end in range(len(parts), -1, -1):
            yield parts[:end]

    def _logarithms(self, counts: Counter[str]) -> Float[np.ndarray, " tags"]:
        """Divide the count for each tag by the tag's total count, and compute the logarithms."""
        shares = (counts[tag] / self.tag_counts[tag] if counts[tag] else 0 for tag in self.tags)
        return np.array([math.log(share) if share else -math.inf for share in shares])


def word_class(word: str, is_first: bool = False, is_known: bool = False) -> tuple[str, ...]:
    """
    Return the narrowest class of a word, by its spelling.

    `is_first`: whether the word begins the sentence. `is_known`: whether the lowercase form of a
    first word is a known word.

    >>> word_class("Dogs"), word_class("well-fed"), word_class("1990")
    (('capital', 's'), ('lower', 'hyphen'), ('', 'digit'))

    >>> word_class("Running", is_first=True), word_class("NATO"), word_class("parsing")
    (('first', 'ing'), ('capitals',), ('lower', 'ing'))
    """
    capitals = sum(letter.isupper() for letter in word)
    if capitals and word[0].isupper() and is_first:
        shape = "known" if is_known else "first"
    elif capitals:
        shape = (
            "capitals" if capitals > 1 and capitals == sum(map(str.isalpha, word)) else "capital"
        )
    else:
        shape = "lower" if any(letter.islower() for letter in word) else ""
    parts = [shape]
    if any(letter.isdigit() for letter in word):
        parts.append("digit")
    if "-" in word:
        parts.append("hyphen")
    lower = word.lower()
    if lower.endswith("s") and len(word) >= 3 and not lower.endswith(("ss", "us", "is")):
        parts.append("s")
    elif len(word) >= 5 and len(parts) == 1:
        parts += [ending for ending in _ENDINGS if lower.endswith(ending)][:1]
    return tuple(parts)
