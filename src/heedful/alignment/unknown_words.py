"""
Unknown words replaced by what they stand for.

A vocabulary of words ends somewhere, and what lies beyond it, names above all, comes out as one
unknown symbol. Attention tells which source word the symbol stands for, and a dictionary, or the
word itself, what to write: the “PosUnk” of Deep-Att in the paper's Table 2.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from heedful.alignment.links import Links
from heedful.errors import TextError
from heedful.text.lines import plain_lines


def replace_unknown(
    target: Sequence[str],
    unknown: Collection[int],
    links: Links,
    source: Sequence[str],
    dictionary: Mapping[str, str] | None = None,
) -> list[str]:
    """
    Write for each unknown word the translation of the source words that it is linked to.

    Parameters
    ----------
    target : sequence of str
        Words of the translation.
    unknown : collection of int
        Numbers of those that are unknown.
    links : frozenset of (int, int)
        Numbers of a source word and a target word.
    source : sequence of str
        Words of the source.
    dictionary : mapping of str to str, optional
        Translations of source words.

    Returns
    -------
    list of str
        As many words; one that stands for several source words holds spaces.

    Notes
    -----
    Luong et al. (2015), section 3.3, and Jean et al. (2015), section 3.3: the dictionary's
    translation, that of the word in lower case, or the word itself, which is right for names and
    numbers. A word that is linked to none stays as it is.

    Examples
    --------
    >>> replace_unknown(["⁇", "dort"], {0}, frozenset({(0, 0), (1, 1)}), ["Zoë", "sleeps"])
    ['Zoë', 'dort']
    """
    translations = dictionary or {}
    replaced = list(target)
    for number in unknown:
        words = [source[i] for i, j in sorted(links) if j == number]
        found = [translations.get(w, translations.get(w.lower(), w)) for w in words]
        if found:
            replaced[number] = " ".join(found)
    return replaced


def split_words(words: Sequence[str], links: Links) -> tuple[list[str], Links]:
    """
    Count replaced words that hold spaces as the words that they are.

    Parameters
    ----------
    words : sequence of str
        Of the target, some perhaps with spaces.
    links : frozenset of (int, int)
        Numbers of a source word and one of `words`.

    Returns
    -------
    words : list of str
        Without spaces.
    links : frozenset of (int, int)
        Each part has the links of the whole.

    Notes
    -----
    So that links fit the text as it is written.
    """
    parts = [word.split(" ") for word in words]
    starts = [sum(map(len, parts[:number])) for number in range(len(parts))]
    moved = ((i, starts[j] + part) for i, j in links for part in range(len(parts[j])))
    return [word for several in parts for word in several], frozenset(moved)


def read_dictionary(path: Path) -> dict[str, str]:
    """
    Read translations of words from a file.

    Parameters
    ----------
    path : Path
        Lines of a word, a tab and its translation, plain or compressed.

    Returns
    -------
    dict of str to str
        Of several translations the first: such files begin with the likeliest.

    Notes
    -----
    Raises `TextError` that names file and line if a line is something else. Empty lines are
    skipped.
    """
    entries: dict[str, str] = {}
    for number, line in enumerate(plain_lines(path), start=1):
        if not line.strip():
            continue
        entry = [part.strip() for part in line.split("\t")]
        if len(entry) != 2 or not all(entry):
            raise TextError(
                f"{path} must hold a word, a tab and its translation in every line, but line "
                f"{number} is {line!r}."
            )
        entries.setdefault(*entry)
    return entries
