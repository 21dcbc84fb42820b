"""
Japanese syllables in kana, and their transliteration by the Hepburn rules.

::

    しんかんせん  →  shinkansen        きっぷ  →  kippu        コーヒー  →  kōhī

The words are random sequences of Japanese syllables, so most of them do not exist; the rules give
one spelling for each. Long vowels have a macron, as in modified Hepburn, except ei and ii in
hiragana.
"""

import random
from collections.abc import Iterator

from heedful.data.text_parts import Pair

LANGUAGES = ("kana", "romaji")

# A row of the syllabary: its kana, then their spellings.
_TABLE = """
あいうえお a i u e o
かきくけこ ka ki ku ke ko
さしすせそ sa shi su se so
たちつてと ta chi tsu te to
なにぬねの na ni nu ne no
はひふへほ ha hi fu he ho
まみむめも ma mi mu me mo
やゆよ ya yu yo
らりるれろ ra ri ru re ro
わ wa
がぎぐげご ga gi gu ge go
ざじずぜぞ za ji zu ze zo
だでど da de do
ばびぶべぼ ba bi bu be bo
ぱぴぷぺぽ pa pi pu pe po
"""
_PLAIN = {
    kana: spelling
    for letters, *spellings in map(str.split, _TABLE.strip().splitlines())
    for kana, spelling in zip(letters, spellings, strict=True)
}
_SMALL = {"ゃ": "a", "ゅ": "u", "ょ": "o"}
_WITH_SMALL = {
    kana + small: f"{_PLAIN[kana][:-1]}{'' if kana in 'しちじ' else 'y'}{vowel}"
    for kana in "きしちにひみりぎじびぴ"
    for small, vowel in _SMALL.items()
}
_SYLLABLES = {**_PLAIN, **_WITH_SMALL}
_NASAL, _STOP, _LONG = "ん", "っ", "ー"
_AFTER_APOSTROPHE = tuple("あいうえおやゆよ")
# Katakana lengthens any vowel with a stroke; hiragana adds a second vowel.
_MACRONS = {"a": "ā", "i": "ī", "u": "ū", "e": "ē", "o": "ō"}
_LONG_VOWELS = ("aa", "uu", "ee", "oo", "ou")
# The code point of a katakana is this much larger than that of its hiragana.
_KATAKANA = ord("ア") - ord("あ")
_TO_HIRAGANA = {ord(kana) + _KATAKANA: kana for kana in {*"".join(_SYLLABLES), _NASAL, _STOP}}
_TO_KATAKANA = {ord(kana): chr(code) for code, kana in _TO_HIRAGANA.items()}


def sample_kana(seed: int) -> Iterator[Pair]:
    """Draw an endless sequence of distinct lines of one to three words."""
    draw = random.Random(seed)
    seen = set()
    while True:
        words = [_word(draw) for _ in range(draw.choice((1, 1, 2, 3)))]
        text = " ".join(words)
        if text not in seen:
            seen.add(text)
            yield text, " ".join(map(romanize, words))


def romanize(word: str) -> str:
    """
    Transliterate a word in hiragana or katakana; raise `KeyError` for other letters.

    >>> romanize("とうきょう"), romanize("ほんや"), romanize("マッチ")
    ('tōkyō', "hon'ya", 'matchi')
    """
    letters = word.translate(_TO_HIRAGANA)
    spelled, place, doubled = "", 0, False
    while place < len(letters):
        is_hiragana = letters[place] == word[place]
        kana = letters[place : place + 2]
        kana = kana if kana in _SYLLABLES else letters[place]
        place += len(kana)
        if kana == _STOP:
            doubled = True
        elif kana == _LONG:
            spelled = spelled[:-1] + _MACRONS.get(spelled[-1:], spelled[-1:])
        elif kana == _NASAL:
            spelled += "n'" if letters[place : place + 1] in _AFTER_APOSTROPHE else "n"
        elif is_hiragana and spelled[-1:] + _SYLLABLES[kana] in _LONG_VOWELS:
            spelled = spelled[:-1] + _MACRONS[spelled[-1]]
        else:
            spelling = _SYLLABLES[kana]
            if doubled:  # the consonant is doubled; chi gets a t
                spelling = f"{'t' if kana[0] == 'ち' else spelling[0]}{spelling}"
            spelled, doubled = spelled + spelling, False
    return spelled


def _word(draw: random.Random) -> str:
    """Draw a word of one to five syllables in hiragana or katakana."""
    katakana = draw.random() < 0.4
    word = ""
    for _ in range(draw.choice((1, 2, 2, 3, 3, 4, 5))):
        kana = draw.choice(_DRAWN)
        # a stop comes between syllables, before k, s, t and p
        if word and word[-1] != _NASAL and _SYLLABLES[kana][0] in "kstcp" and draw.random() < 0.15:
            word += _STOP
        word += kana
        chance = draw.random()
        if chance < 0.15:
            word += _NASAL
        elif chance < 0.3:
            word += _LONG if katakana else _long_vowel(_SYLLABLES[kana][-1], draw)
    return word.translate(_TO_KATAKANA) if katakana else word


def _long_vowel(vowel: str, draw: random.Random) -> str:
    """Return the second kana of a long vowel in hiragana: mostly u after o and i after e."""
    usual = {"a": "あ", "i": "い", "u": "う", "e": "い", "o": "う"}
    return {"e": "え", "o": "お"}.get(vowel, usual[vowel]) if draw.random() < 0.2 else usual[vowel]


# Syllables with a small kana are rarer.
_DRAWN = [*_PLAIN] * 2 + [*_WITH_SMALL]
