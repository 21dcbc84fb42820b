"""
The scripts of each language, and the share of a line's letters in these scripts.

The letters of a line reveal another language or a wrong encoding. The script of a letter is the
first word of its Unicode name (“LATIN SMALL LETTER A”, “HIRAGANA LETTER A”), which the standard
library knows.
"""

import unicodedata
from collections import Counter

from heedful.text.language_codes import language_of_code

_WRITTEN_IN = {
    ("LATIN",): (
        "af br bs ca ceb co cs cy da de en eo es et eu fi fil fo fr fy ga gd gl gn ha haw hr ht hu "
        "id ig is it jv la lb lt lv mg mi ms mt nb nl nn no oc om pl pt qu rm ro rw sk sl sm sn so "
        "sq st su sv sw tk tl tn to tr ts vi wo xh yo zu"
    ),
    ("CYRILLIC",): "ba be bg ce cv ky mk ru tg tt uk",
    ("LATIN", "CYRILLIC"): "az kk sh sr uz",
    ("GREEK",): "el grc",
    ("ARABIC",): "ar arz ckb fa ps ug ur",
    ("ARABIC", "LATIN"): "ku",
    ("HEBREW",): "he iw yi",
    ("DEVANAGARI",): "bho hi mai mr ne sa",
    ("DEVANAGARI", "ARABIC"): "ks sd",
    ("BENGALI",): "as bn",
    ("GURMUKHI", "ARABIC"): "pa",
    ("GUJARATI",): "gu",
    ("ORIYA",): "or",
    ("TAMIL",): "ta",
    ("TELUGU",): "te",
    ("KANNADA",): "kn",
    ("MALAYALAM",): "ml",
    ("SINHALA",): "si",
    ("THAANA",): "dv",
    ("THAI",): "th",
    ("LAO",): "lo",
    ("KHMER",): "km",
    ("MYANMAR",): "my",
    ("TIBETAN",): "bo dz",
    ("CYRILLIC", "MONGOLIAN"): "mn",
    ("GEORGIAN",): "ka",
    ("ARMENIAN",): "hy",
    ("ETHIOPIC",): "am ti",
    ("CHEROKEE",): "chr",
    ("CANADIAN", "LATIN"): "iu",
    ("CJK", "BOPOMOFO"): "lzh yue zh",
    ("CJK", "HIRAGANA", "HENTAIGANA", "KATAKANA"): "ja",
    ("HANGUL", "CJK"): "ko",
}
_OF_LANGUAGE = {
    code: frozenset(scripts) for scripts, codes in _WRITTEN_IN.items() for code in codes.split()
}
# Codes of ISO 15924 in language tags such as sr-Latn or eng_Latn.
_OF_TAG = {
    "arab": "ARABIC",
    "armn": "ARMENIAN",
    "beng": "BENGALI",
    "cans": "CANADIAN",
    "cher": "CHEROKEE",
    "cyrl": "CYRILLIC",
    "deva": "DEVANAGARI",
    "ethi": "ETHIOPIC",
    "geor": "GEORGIAN",
    "grek": "GREEK",
    "gujr": "GUJARATI",
    "guru": "GURMUKHI",
    "hang": "HANGUL",
    "hans": "CJK BOPOMOFO",
    "hant": "CJK BOPOMOFO",
    "hebr": "HEBREW",
    "jpan": "CJK HIRAGANA HENTAIGANA KATAKANA",
    "khmr": "KHMER",
    "knda": "KANNADA",
    "kore": "HANGUL CJK",
    "laoo": "LAO",
    "latn": "LATIN",
    "mlym": "MALAYALAM",
    "mong": "MONGOLIAN",
    "mymr": "MYANMAR",
    "orya": "ORIYA",
    "sinh": "SINHALA",
    "taml": "TAMIL",
    "telu": "TELUGU",
    "thaa": "THAANA",
    "thai": "THAI",
    "tibt": "TIBETAN",
}
# First words of names that are not scripts: symbols made of letters, marks of several scripts.
_OF_NO_SCRIPT = (
    "MODIFIER MATHEMATICAL DOUBLE-STRUCK SCRIPT BLACK-LETTER PLANCK EULER INFORMATION ALEF BET "
    "GIMEL DALET MICRO OHM KELVIN ANGSTROM FEMININE MASCULINE SUPERSCRIPT TURNED ROMAN CARON "
    "VEDIC VERTICAL MASU IDEOGRAPHIC KATAKANA-HIRAGANA"
)


def scripts_of(language: str) -> frozenset[str] | None:
    """
    Return the scripts of a language.

    Returns the first words of the letters' Unicode names; None for a language not in the table.

    A script in the language code overrides the language. Chinese, Japanese and Korean each have
    several scripts. Letters of any other script, as in quotations, lower a line's share.

    >>> sorted(scripts_of("sr")), sorted(scripts_of("sr-Latn"))
    (['CYRILLIC', 'LATIN'], ['LATIN'])
    """
    for part in language.lower().replace("_", "-").split("-")[1:]:
        if part in _OF_TAG:
            return frozenset(_OF_TAG[part].split())
    return _OF_LANGUAGE.get(language_of_code(language))


def share_in(line: str, scripts: frozenset[str]) -> float:
    """
    Compute the share of a line's letters that are in the given scripts.

    Digits, punctuation and letters without a script (µ, ª, mathematical signs) are not counted.
    Every repetition of a letter counts.

    >>> share_in("Да! Yes.", frozenset(["CYRILLIC"]))
    0.4
    """
    counts = count_scripts(line)
    letters = counts.total()
    return sum(counts[script] for script in scripts) / letters if letters else 1.0


def count_scripts(text: str) -> Counter[str]:
    """
    Count the letters of each script.

    >>> count_scripts("Да! Yes.")
    Counter({'LATIN': 3, 'CYRILLIC': 2})
    """
    counts: Counter[str] = Counter()
    for character, count in Counter(text).items():
        if script := _SCRIPT[character]:
            counts[script] += count
    return counts


class _Scripts(dict[str, str]):
    """A cache of each character's script; empty for characters without one."""

    def __missing__(self, character: str) -> str:
        words = unicodedata.name(character, "UNNAMED").split()
        script = words[words[0] in ("FULLWIDTH", "HALFWIDTH") and len(words) > 1]
        if not character.isalpha() or script in _OF_NO_SCRIPT.split():
            script = ""
        self[character] = script
        return script


_SCRIPT = _Scripts()
