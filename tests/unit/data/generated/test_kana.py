"""Transliterations beside known words, and beside rules on the names that Unicode gives to kana."""

import re
import unicodedata
from itertools import islice

import pytest

from heedful.data.generated.kana import romanize, sample_kana

KNOWN = """
とうきょう tōkyō
おおさか ōsaka
きょうと kyōto
しんぶん shinbun
きって kitte
まっちゃ matcha
けっこん kekkon
ざっし zasshi
ほんや hon'ya
きんえん kin'en
しんよう shin'yō
せんせい sensei
おにいさん oniisan
おねえさん onēsan
ふじ fuji
つくえ tsukue
ちゃわん chawan
コーヒー kōhī
チョコレート chokorēto
シャワー shawā
サッカー sakkā
マオ mao
"""


def by_names(word):
    """Transliterate by the names of the letters, which spell si, ti, tu and small ya."""
    text = ""
    for letter in word:
        name = unicodedata.name(letter)
        kind, _, syllable = name.partition(" LETTER ")
        text += {"SMALL TU": "Q", "N": "N"}.get(syllable, syllable.lower().replace("small ", "*"))
        text += "-" * name.endswith("SOUND MARK")
        # vowels of katakana do not run together
        text += "|" * (kind == "KATAKANA")
    text = re.sub(r"i\|?\*y", "y", text)
    for rule in ("hu fu", "sy sh", "ty ch", "zy j", "si shi", "ti chi", "tu tsu", "zi ji"):
        text = text.replace(*rule.split())
    text = re.sub(r"N(?=\|?[aiueoy])", "n'", text).replace("N", "n")
    text = re.sub(r"Q\|?ch", "tch", text)
    text = re.sub(r"Q\|?(\w)", r"\1\1", text)
    macrons = dict(zip("aiueo", "āīūēō", strict=True))
    text = re.sub(r"([aiueo])\|?-", lambda found: macrons[found[1]], text)
    text = re.sub("aa|uu|ee|oo|ou", lambda found: macrons[found[0][0]], text)
    return text.replace("|", "")


@pytest.mark.parametrize("pair", KNOWN.strip().splitlines())
def test_known_words(pair):
    kana, romaji = pair.split()
    assert romanize(kana) == by_names(kana) == romaji


def test_drawn_words_are_spelled_as_by_the_names_of_their_letters():
    drawn = [*islice(sample_kana(seed=3), 3000)]
    for kana, romaji in drawn:
        assert " ".join(map(by_names, kana.split())) == romaji, kana
    assert len({kana for kana, _ in drawn}) == len(drawn)
    assert drawn[:50] == [*islice(sample_kana(seed=3), 50)]


def test_every_rule_occurs():
    text = " ".join(romaji for _, romaji in islice(sample_kana(seed=1), 2000))
    for part in ("tch", "ssh", "kk", "n'", "ā", "ī", "ū", "ē", "ō", "kyo", "ja", "fu", "tsu"):
        assert text.count(part) > 5, part


def test_another_letter_is_refused():
    with pytest.raises(KeyError):
        romanize("犬")
