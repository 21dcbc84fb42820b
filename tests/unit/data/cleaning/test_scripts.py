import unicodedata
from collections import Counter
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.cleaning.scripts import _SCRIPT, _WRITTEN_IN, scripts_of, share_in
from heedful.text.corpus import read_lines

# What Unicode calls a script, where the names of its letters begin with another word.
UNICODE = {"CJK": "Han", "CANADIAN": "Canadian_Aboriginal", "HENTAIGANA": "Hiragana"}
# Letters that Unicode gives to one script or to several, and their names to another.
ODD = {
    "ARABIC TATWEEL",
    "GREEK NUMERAL SIGN",
    "OLD CHINESE ITERATION MARK",
    "HALFWIDTH KATAKANA VOICED SOUND MARK",
    "HALFWIDTH KATAKANA SEMI-VOICED SOUND MARK",
}


# Every character up to U+1FFFF, of the long rows of ideographs and syllables every hundredth.
CHARACTERS = [
    chr(code)
    for code in range(0x20000)
    if code % 100 == 0 or not (0x3400 <= code < 0xA000 or 0xAC00 <= code < 0xD7A4)
]


def test_every_letter_has_the_script_that_unicode_gives_it():
    letters = "".join(filter(str.isalpha, CHARACTERS))
    wrong = []
    for script in {script for scripts in _WRITTEN_IN for script in scripts}:
        name = UNICODE.get(script, script.title())
        theirs = set(regex.findall(rf"\p{{Script={name}}}", letters))
        ours = {letter for letter in letters if _SCRIPT[letter] == script}
        # A letter may also count as none at all: ª, the Kelvin sign.
        wrong += [letter for letter in ours - theirs if script != "HIRAGANA"]
        wrong += [letter for letter in theirs - ours if _SCRIPT[letter] and name != "Hiragana"]
    assert {unicodedata.name(letter, letter) for letter in wrong} == ODD
    kana = {letter for letter in letters if _SCRIPT[letter] in ("HIRAGANA", "HENTAIGANA")}
    assert kana == set(regex.findall(r"\p{Script=Hiragana}", letters))


def test_nothing_but_letters_has_a_script():
    others = [c for c in CHARACTERS if unicodedata.name(c, "") and not c.isalpha()]
    assert Counter(_SCRIPT[character] for character in others) == {"": len(others)}


@pytest.mark.parametrize(
    ("language", "scripts"),
    [
        ("en", {"LATIN"}),
        ("pt_BR", {"LATIN"}),
        ("ru", {"CYRILLIC"}),
        ("sr", {"LATIN", "CYRILLIC"}),
        ("sr-Latn", {"LATIN"}),
        ("SR_cyrl_RS", {"CYRILLIC"}),
        ("eng_Latn", {"LATIN"}),
        ("zh-Hant", {"CJK", "BOPOMOFO"}),
        ("ja", {"CJK", "HIRAGANA", "HENTAIGANA", "KATAKANA"}),
    ],
)
def test_a_language_has_its_scripts(language, scripts):
    assert scripts_of(language) == scripts


@pytest.mark.parametrize("language", ["", "xx", "txt", "tlh-Piqd"])
def test_a_language_that_is_not_known_is_said_not_to_be(language):
    assert scripts_of(language) is None


@given(st.text(st.sampled_from("aéßяΩ日ア가ب7 .µª\u0301"), max_size=30))
def test_the_share_is_counted_letter_by_letter(line):
    letters = [c for c in line if c in "aéßяΩ日ア가ب"]
    for language, own in (("en", "aéß"), ("ru", "я"), ("ja", "日ア"), ("ko", "가日")):
        expected = sum(c in own for c in letters) / len(letters) if letters else 1.0
        assert share_in(line, scripts_of(language)) == expected


def test_real_english_and_japanese_are_told_apart(corpora: Path):
    folder = corpora / "tanaka-en-ja"
    for language, other in (("en", "ja"), ("ja", "en")):
        lines = list(read_lines(next(folder.glob(f"*dev*.{language}*"))))
        own = [share_in(line, scripts_of(language)) >= 0.5 for line in lines]
        foreign = [share_in(line, scripts_of(other)) >= 0.5 for line in lines]
        assert sum(own) >= 0.999 * len(lines)
        assert sum(foreign) <= 0.001 * len(lines)
