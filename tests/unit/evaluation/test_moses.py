import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacremoses import MosesPunctNormalizer

from heedful.errors import MissingExtra
from heedful.evaluation import moses
from heedful.evaluation.moses import replace_unicode_punctuation, tokenize
from heedful.text.corpus import read_lines

# Lines of raw text that come out differently from the text that the Perl scripts made: none.
# The training texts go the same way: tests/soak/test_moses.py.
MULTI30K = [
    *((language, "val") for language in ("cs", "de", "en", "fr")),
    *((language, "test_2016_flickr") for language in ("cs", "de", "en", "fr")),
]


def multi30k_differences(corpora, language: str, split: str) -> list[tuple[str, str]]:
    raw = read_lines(corpora / f"multi30k/raw/{split}.{language}.gz")
    perl = read_lines(corpora / f"multi30k/tok/{split}.lc.norm.tok.{language}.xz")
    # normalize-punctuation.perl of December 2017 (3a0631a); one rule needs the end of the line.
    normalizer = MosesPunctNormalizer(lang=language, perl_parity=True)
    pairs = [
        (tokenize(normalizer.normalize(f"{line.lower()}\n"), language), expected)
        for line, expected in zip(raw, perl, strict=True)
    ]
    assert len(pairs) in (29_000, 1_014, 1_000)
    return [(ours, theirs) for ours, theirs in pairs if ours != theirs]


@pytest.mark.parametrize(("language", "split"), MULTI30K)
def test_multi30k_is_what_the_perl_scripts_made_of_it(corpora, language, split):
    assert multi30k_differences(corpora, language, split) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("“so” ’s “", '"so" \'s "'),
        ("„so“", '„so"'),
        ("ｗ：，！？；（）", "ｗ:,!?;()"),
        ("und …", "und ..."),
        ("２１％", "21%"),
        ("plain - 'text' \"here\"", "plain - 'text' \"here\""),
    ],
)
def test_unicode_punctuation_becomes_ascii(line, expected):
    assert replace_unicode_punctuation(line) == expected


@pytest.mark.parametrize(
    ("language", "line", "expected"),
    [
        ("de", "Das ist z.B. Dr. Müllers Buch.", "Das ist z.B. Dr. Müllers Buch ."),
        ("de", "Sie hat Bücher usw.", "Sie hat Bücher usw."),
        (
            "de",
            "Am 3. Mai kostet's 1.000,50 € (netto).",
            "Am 3. Mai kostet &apos; s 1.000,50 € ( netto ) .",
        ),
        (
            "en",
            "It isn't Tom's & Co. [sic]",
            "It isn &apos;t Tom &apos;s &amp; Co . &#91; sic &#93;",
        ),
        ("fr", "L'été, c'est ça!", "L&apos; été , c&apos; est ça !"),
        ("de", 'a|b <c> "d"', "a &#124; b &lt; c &gt; &quot; d &quot;"),
        ("de", "Rich-Text-Format ...", "Rich-Text-Format ..."),
        ("de", "a\u00a0b\u2003c", "a b c"),
        ("de", "", ""),
        ("xx", "Nobody's tongue.", "Nobody &apos; s tongue ."),
    ],
)
def test_words_and_punctuation_are_set_apart(language, line, expected):
    assert tokenize(line, language) == expected


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=40))
def test_tokens_are_joined_by_single_spaces(line):
    tokens = tokenize(line, "de")
    assert tokens == " ".join(tokens.split())
    assert not set("<>|[]'\"") & set(tokens)


def test_without_sacremoses_the_message_says_how_to_get_it(monkeypatch):
    assert tokenize("So.", "de") == "So ."
    moses._tokenizer.cache_clear()
    moses._normalizer.cache_clear()
    monkeypatch.setitem(sys.modules, "sacremoses", None)  # what Python itself does not find
    for call in (lambda: tokenize("a", "de"), lambda: replace_unicode_punctuation("a")):
        with pytest.raises(MissingExtra, match=r"pip install 'heedful\[paper\]'"):
            call()
