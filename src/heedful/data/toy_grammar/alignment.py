"""
Words tagged with the tree node they realize, for gold word alignments.

Both languages realize the same tree, and words that realize the same node translate each other. So
the word alignment of the corpus is exact.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple


class TaggedWord(NamedTuple):
    """
    A word, and the tree node that it realizes.

    Links between two core words are sure; all other links within a node are possible.
    """

    form: str
    """The word; “form|form before a vowel” until it is spelled."""
    of: str
    """Path of the node in the tree, such as “subject noun”."""
    core: bool = True
    """Whether the word carries the meaning of the node, as “pas” does in “ne … pas”."""


class SurfaceToken(NamedTuple):
    """
    One or more words that are written without a space between them.

    Alignments link these tokens, which are separated by spaces.
    """

    text: str
    """Its text: “dog”, “l'arbre”, “du”."""
    words: tuple[TaggedWord, ...]
    """The words in it: one, or two such as “l'” and “arbre”, or “de” and “le”."""


def tag_words(text: str, of: str) -> list[TaggedWord]:
    """Tag words with the tree node that they realize."""
    if " " not in text:
        return [TaggedWord(text, of)]
    words = text.split()
    longest = max(words, key=lambda word: len(word.partition("|")[0]))
    return [TaggedWord(word, of, word == longest) for word in words]


def nest_words(part: str, words: Iterable[TaggedWord]) -> list[TaggedWord]:
    """Put the name of an enclosing node before the path of each word's node."""
    # Distinguishes the noun of the subject from the noun of the object.
    return [TaggedWord(form, f"{part} {of}", core) for form, of, core in words]


def choose_forms(
    words: Sequence[TaggedWord], vowels: str, aspirated: Collection[str] = ()
) -> list[TaggedWord]:
    """
    Choose the form of each word by the first letter of the next word.

    `words`: written “form|form before a vowel” if they have two forms; empty words are left out.

    Words are spelled from the last to the first, because the next word must be known.
    """
    spelled: list[TaggedWord] = []
    following = ""
    for word in reversed(words):
        if "|" in word.form:
            usual, before_vowel = word.form.split("|")
            vowel = following and following[0] in vowels and following not in aspirated
            word = TaggedWord(before_vowel if vowel else usual, word.of, word.core)
        if word.form:
            following = word.form
            spelled.append(word)
    return spelled[::-1]


def links(
    source: Sequence[SurfaceToken], target: Sequence[SurfaceToken]
) -> Iterator[tuple[tuple[int, int], bool]]:
    """Link the tokens of two languages that realize the same node."""
    for i, left in enumerate(source):
        for j, right in enumerate(target):
            both = [a.core and b.core for a in left.words for b in right.words if a.of == b.of]
            if both:
                yield (i, j), any(both)
