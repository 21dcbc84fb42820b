"""
Replacement of unknown words in translations.

A word vocabulary is finite; each word outside it, often a name, becomes the unknown symbol.
Attention shows which source word the symbol translates. The dictionary entry of this word, or the
word itself, replaces the symbol. This is the “PosUnk” of Deep-Att in the paper's Table 2.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from heedful.alignment.links import Links
from heedful.text.lines import two_columns


def replace_unknown(
    target: Sequence[str],
    unknown: Collection[int],
    links: Links,
    source: Sequence[str],
    dictionary: Mapping[str, str] | None = None,
) -> list[str]:
    """
    Replace each unknown word with a translation of the source words that it is linked to.

    Each source word contributes its dictionary entry, else the entry of the lower-cased word, else
    itself. See section 3.3 of Luong et al. (2015) and of Jean et al. (2015). An unlinked unknown
    word stays unchanged.

    >>> replace_unknown(["⁇", "dort"], {0}, frozenset({(0, 0), (1, 1)}), ["Zoë", "sleeps"])
    ['Zoë', 'dort']
    """
    translations = dictionary or {}
    replaced = list(target)
    for number in unknown:
        words = [source[i] for i, j in sorted(links) if j == number]
        replacements = [translations.get(w, translations.get(w.lower(), w)) for w in words]
        if replacements:
            replaced[number] = " ".join(replacements)
    return replaced


def split_words(words: Sequence[str], links: Links) -> tuple[list[str], Links]:
    """Split replacements that contain spaces into words, and renumber the links."""
    parts = [word.split(" ") for word in words]
    starts = [sum(map(len, parts[:number])) for number in range(len(parts))]
    moved = ((i, starts[j] + part) for i, j in links for part in range(len(parts[j])))
    return [word for several in parts for word in several], frozenset(moved)


def read_dictionary(path: Path) -> dict[str, str]:
    """
    Read a dictionary of word translations from a file.

    Raises `TextError` with file and line for a malformed line. Empty lines are skipped.
    """
    entries: dict[str, str] = {}
    for _, word, translation in two_columns(path, "word"):
        entries.setdefault(word, translation)
    return entries
