"""
Fonts for labels: matplotlib's own font, and installed fonts for the characters that it lacks.

matplotlib creates its list of fonts when it is first used, so the list lacks fonts that were
installed later. Therefore this module searches the machine for fonts. The search takes a third of a
second for three hundred fonts, and is done only for characters that matplotlib's own font lacks.
"""

import warnings
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.ft2font import FT2Font

OWN_FONT = "DejaVu Sans"
# Fonts that draw every character as a box, have no outlines, or have other symbols at the codes of
# characters.
_USELESS = ("LastResort", "ColorEmoji", "cmex", "cmsy")
_REGULAR = ("Regular", "Book", "Roman", "Normal", "Medium")
# Example fonts for scripts whose font is not named “Noto Sans” plus the name of the script.
_NO_SCRIPTS = ("Common", "Inherited", "Unknown")
_EXAMPLES = {
    **dict.fromkeys(("Han", "Hiragana", "Katakana", "Bopomofo", "Hangul"), "Noto Sans CJK"),
    **dict.fromkeys(_NO_SCRIPTS, "Symbola"),
    "Tibetan": "Noto Serif Tibetan",
}


class Face(NamedTuple):
    """A face of a font file."""

    path: str
    number: int
    """Index of the face in a collection; 0 in a file with one face."""
    characters: frozenset[str]
    """The requested characters that the face has."""
    preference: tuple[bool, ...]
    """Sort key among faces with equally many characters; the smallest is best."""


def font_families(texts: Iterable[str], *, warns: bool = False) -> list[str]:
    """
    Choose the fonts for texts: matplotlib's own, and installed fonts for missing characters.

    `warns`: whether to warn of characters that no font of this machine has.
    """
    shown = {letter for text in texts for letter in text if letter.isprintable()}
    lacking = _find_lacking(frozenset(shown))
    families, missing = _installed_families(lacking) if lacking else ((), frozenset[str]())
    if missing:
        _installed_families.cache_clear()  # a font may be installed before the next call
    if missing and warns:
        warnings.warn(_describe(missing), RuntimeWarning, stacklevel=2)
    return [OWN_FONT, *families]


def choose_faces(
    characters: Iterable[str], files: Iterable[str]
) -> tuple[list[Face], frozenset[str]]:
    """
    Choose few faces of font files that together have the given characters.

    Returns the faces, and the characters that none of them has.
    """
    missing, chosen = frozenset(characters), list[Face]()
    faces = [face for file in sorted(files) for face in _list_faces(file, missing)]
    while missing and faces:
        best = min(faces, key=lambda face: (-len(face.characters & missing), face.preference))
        if not best.characters & missing:
            break
        chosen.append(best)
        missing -= best.characters
    return chosen, missing


def _find_lacking(characters: frozenset[str]) -> frozenset[str]:
    """Find the characters that matplotlib's own font lacks."""
    from matplotlib.font_manager import findfont, get_font

    font = get_font(findfont(OWN_FONT))
    return frozenset(letter for letter in characters if not font.get_char_index(ord(letter)))


@lru_cache(maxsize=64)
def _installed_families(characters: frozenset[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Choose installed fonts for characters, and register them with matplotlib."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    files = {*findSystemFonts(), *(entry.fname for entry in fontManager.ttflist)}
    chosen, missing = choose_faces(characters, files)
    families = []
    for face in chosen:
        if not any(entry.fname == face.path for entry in fontManager.ttflist):
            fontManager.addfont(face.path)
        families += [
            entry.name
            for entry in fontManager.ttflist
            if (entry.fname, entry.index) == (face.path, face.number)
        ][:1]
    return tuple(families), missing


def _list_faces(file: str, characters: frozenset[str]) -> Iterator[Face]:
    """List the faces of a font file that have at least one of the characters."""
    from matplotlib.ft2font import FT2Font

    if any(name in Path(file).name for name in _USELESS):
        return
    count = index = 0
    while index <= count:
        try:
            font = FT2Font(file, face_index=index)
        except (OSError, RuntimeError):
            return  # the file is damaged or not a font
        count, index = font.num_faces - 1, index + 1
        own = frozenset(c for c in characters if font.get_char_index(ord(c)))
        if own and font.scalable:
            yield Face(file, index - 1, own, _preference(font, characters))


def _preference(font: "FT2Font", characters: Iterable[str]) -> tuple[bool, ...]:
    """Compute the sort key of a face: regular sans-serif faces of the text's region come first."""
    scripts = {*map(_script, characters)}
    regions = {"Hiragana": "JP", "Katakana": "JP", "Hangul": "KR"}
    region = next((code for name, code in regions.items() if name in scripts), "SC")
    family = font.family_name
    return (
        font.style_name not in _REGULAR,
        "CJK" in family and not family.endswith(f" {region}"),
        not family.startswith("Noto Sans"),
        "Sans" not in family,
        "Mono" in family,
    )


def _script(letter: str) -> str:
    """Return the name of a character's script."""
    # fontTools is installed, because matplotlib requires it.
    from fontTools.unicodedata import script, script_name

    return script_name(script(letter))


def _describe(missing: frozenset[str]) -> str:
    """Name the scripts without a font, and an example of a font for each script."""
    scripts = sorted({*map(_script, missing)}, key=lambda name: (name in _NO_SCRIPTS, name))
    named = dict.fromkeys("symbols" if name in _NO_SCRIPTS else name for name in scripts)
    examples = dict.fromkeys(_EXAMPLES.get(name, f"Noto Sans {name}") for name in scripts)
    return (
        "labels show boxes for letters that no font on this machine has "
        f"({', '.join(named)}); install fonts such as {', '.join(examples)}."
    )
