"""
Words that remember which part of a tree they say.

Two languages say the same tree; words of the two that say the same part translate each other. So
the corpus comes with its word alignment, which no aligner had to guess.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple


class TaggedWord(NamedTuple):
    """
    A word, and the part of the tree that it says.

    Attributes
    ----------
    form : str
        The word; “form|form before a vowel” until it is spelt.
    of : str
        Path of the part in the tree, such as “subject noun”.
    core : bool, default True
        Whether the word carries the meaning of the part, as “pas” does of “ne … pas”.

    Notes
    -----
    Links between two core words are sure, all others of the same part are possible ones.
    """

    form: str
    of: str
    core: bool = True


class SurfaceToken(NamedTuple):
    """
    What stands between two spaces: a word, or some that are written as one.

    Attributes
    ----------
    text : str
        Its letters: “dog”, “l'arbre”, “du”.
    words : tuple of TaggedWord
        The words in it: one, or “l'” and “arbre”, “de” and “le”.

    Notes
    -----
    Alignments count these, as they count anything that spaces set apart.
    """

    text: str
    words: tuple[TaggedWord, ...]


def tag_words(text: str, of: str) -> list[TaggedWord]:
    """
    Say a part of the tree in one or several words.

    Parameters
    ----------
    text : str
        Words between spaces, each perhaps “form|form before a vowel”.
    of : str
        The part.

    Returns
    -------
    list of Said
        The longest word carries the meaning: “near”, “in *front* of”, “*parce* que”.

    Notes
    -----
    The first of equally long ones.
    """
    if " " not in text:
        return [TaggedWord(text, of)]
    words = text.split()
    longest = max(words, key=lambda word: len(word.partition("|")[0]))
    return [TaggedWord(word, of, word == longest) for word in words]


def nest_words(part: str, words: Iterable[TaggedWord]) -> list[TaggedWord]:
    """
    Move words into a larger part of the tree.

    Parameters
    ----------
    part : str
        The larger part.
    words : iterable of TaggedWord
        What is said in it.

    Returns
    -------
    list of Said
        The same words with longer paths.

    Notes
    -----
    Tells the noun of the subject from the noun of the object.
    """
    return [TaggedWord(form, f"{part} {of}", core) for form, of, core in words]


def choose_forms(
    words: Sequence[TaggedWord], vowels: str, aspirated: Collection[str] = ()
) -> list[TaggedWord]:
    """
    Choose between the forms of each word by the letter that opens the next one.

    Parameters
    ----------
    words : sequence of TaggedWord
        With “form|form before a vowel” where it matters; empty ones are left out.
    vowels : str
        The letters that ask for the second form.
    aspirated : collection of str, optional
        Words that do not, whatever they begin with.

    Returns
    -------
    list of Said
        One form each.

    Notes
    -----
    From the end to the beginning, for the next word must be spelt first.
    """
    spelt: list[TaggedWord] = []
    following = ""
    for word in reversed(words):
        if "|" in word.form:
            usual, before_vowel = word.form.split("|")
            vowel = following and following[0] in vowels and following not in aspirated
            word = TaggedWord(before_vowel if vowel else usual, word.of, word.core)
        if word.form:
            following = word.form
            spelt.append(word)
    return spelt[::-1]


def links(
    source: Sequence[SurfaceToken], target: Sequence[SurfaceToken]
) -> Iterator[tuple[tuple[int, int], bool]]:
    """
    Find the tokens of two languages that say the same part of a tree.

    Parameters
    ----------
    source : sequence of SurfaceToken
        One language.
    target : sequence of SurfaceToken
        The other.

    Yields
    ------
    link : tuple of int
        A source token's number and a target token's.
    sure : bool
        Whether two core words meet there.

    Notes
    -----
    Sure and possible links as Och and Ney (2003) ask their annotators for.
    """
    for i, one in enumerate(source):
        for j, other in enumerate(target):
            both = [a.core and b.core for a in one.words for b in other.words if a.of == b.of]
            if both:
                yield (i, j), any(both)
