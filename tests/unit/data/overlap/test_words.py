import re
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.overlap.words import grams, normalize_line, words


@pytest.mark.parametrize(
    ("line", "expected"),
    [("  Straße  \t DER\u00a0Stadt\n", "strasse der stadt"), ("", ""), ("\u3000", "")],
)
def test_small_differences_do_not_count(line, expected):
    assert normalize_line(line) == expected


FORMS = ("NFC", "NFD")


@given(st.text(st.characters(codec="utf-8")), st.sampled_from(FORMS), st.sampled_from(FORMS))
def test_composed_and_decomposed_letters_are_the_same(text, first, second):
    assert normalize_line(normalize(first, text)) == normalize_line(normalize(second, text))
    assert normalize_line(normalize_line(text)) == normalize_line(text)


@given(st.text(st.sampled_from("aBc9 _-'.éÉßñЖ\t")))
def test_words_are_runs_of_letters_and_digits(line):
    assert list(words(line)) == re.findall(r"[^\W_]+", line.casefold())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("がぎ、ｱ", ["が", "ぎ", "ｱ"]),
        ("か\u3099き", ["が", "き"]),
        ("ไทยก็", [*"ไทย", "ก็"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("학생이 잔다", ["학생이", "잔다"]),
        ("\u0301a \u0301 b\u0301", ["a", "b\u0301"]),
        ("3.5 a\ufeffb \U00020000x", ["3", "5", "a", "b", "\U00020000", "x"]),
        ("\ud800 a", ["a"]),
    ],
)
def test_scripts_with_and_without_spaces(line, expected):
    assert list(words(line)) == expected


@given(st.lists(st.sampled_from("ab"), max_size=9))
def test_every_four_neighbors_are_a_gram(line):
    assert list(grams(line)) == [tuple(line[i : i + 4]) for i in range(len(line) - 3)]
