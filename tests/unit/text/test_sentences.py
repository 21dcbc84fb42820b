"""Text is split into sentences and joined again without losing a character."""

import re
from itertools import zip_longest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.text.sentences import CutRule, keep_whole, split

SPACES = [
    "\n",
    "\r\n",
    "\r",
    "\n\n",
    "\t",
    "    ",
    " ",
    "\u2028",
    "\x85",
    "\x1c",
    "\ufeff",
    "\u200b",
]
WORDS = """
Hello. |How are you? |Dr. Smith|e.g. this|M. |- |* |1. |2. |3) |• |> |...|?!|“Oh!” |世界。
नमस्ते। |😀 |🇩🇪|www.example.org |me@example.org|12:30 |$3.50. |[1] |(Yes.) |שלום. |مرحبا؟ |
á|\xa0|\xad|\ud800
"""
BITS = st.sampled_from([*SPACES, *WORDS.strip().replace("\n", "|").split("|")])
TEXTS = st.one_of(st.text(), st.lists(BITS, max_size=25).map("".join))
CODES = st.sampled_from(["en", "de", "fr", "ja", "hi", "ar", "xx", "", "pt-BR"])


@given(TEXTS, CODES)
def test_untranslated_pieces_give_the_text_back(text, language):
    layout = split(text, language)
    assert layout.fill(layout.pieces) == text
    assert len(layout.gaps) == len(layout.pieces) + 1
    for piece in layout.pieces:
        assert piece == piece.strip()
        assert any(map(str.isalpha, piece))
        assert len(piece.splitlines()) == 1


@given(TEXTS, st.integers(1, 12))
def test_a_sentence_is_cut_until_it_fits(text, most):
    layout = split(text, "en", lambda piece: len(piece) <= most)
    assert layout.fill(layout.pieces) == text
    assert all(len(piece) <= most for piece in layout.pieces)


@given(TEXTS, st.integers(1, 12))
def test_a_text_that_is_one_sentence_is_cut_only_if_it_must_be(text, most):
    layout = keep_whole(text, lambda piece: len(piece) <= most)
    assert layout.fill(layout.pieces).split() == text.split()
    assert all(0 < len(piece.strip()) == len(piece) <= most for piece in layout.pieces)
    whole = keep_whole(text, lambda piece: True)
    assert len(whole.pieces) == bool(text.strip())
    assert whole.gaps[0] + text.strip() + whole.gaps[-1] == text or not whole.pieces


def test_a_text_that_is_one_sentence_has_no_line_breaks():
    layout = keep_whole("\n One.\r\nTwo.\t\n", lambda piece: True)
    assert layout.pieces == ("One. Two.",)
    assert layout.gaps == ("\n ", "\t\n")


@pytest.mark.parametrize(
    ("text", "language", "pieces"),
    [
        ("Dr. Smith came. He left.", "en", ["Dr. Smith came.", "He left."]),
        ("Das ist z. B. gut. Am 3. Mai kam er.", "de", ["Das ist z. B. gut.", "Am 3. Mai kam er."]),
        ("M. Dupont est là. Il part.", "fr", ["M. Dupont est là.", "Il part."]),
        ("世界。你好！再见", "zh", ["世界。", "你好！", "再见"]),
        ("नमस्ते। आप कैसे हैं?", "hi", ["नमस्ते।", "आप कैसे हैं?"]),
        ("One line\nand the next", "en", ["One line", "and the next"]),
        ("Name\tAge\nAnn\t12", "en", ["Name", "Age", "Ann"]),
        ("Name    Age", "en", ["Name", "Age"]),
        ("An old  typewriter.  Two spaces.", "en", ["An old  typewriter.", "Two spaces."]),
        ("  - One\n  - [x] Two\n> > Three", "en", ["One", "Two", "Three"]),
        ("1. One.\n2. Two.", "en", ["One.", "Two."]),
        ("3. Oktober ist frei.", "de", ["3. Oktober ist frei."]),
        ("12:30 --- 42\n***\n", "en", []),
        ("See:\nhttps://example.org/a?b=c\nme@example.org", "en", ["See:"]),
        ("", "en", []),
    ],
)
def test_what_is_translated(text, language, pieces):
    assert list(split(text, language).pieces) == pieces


def test_layout_stays_where_it_was():
    text = "\n  Hello. How are you?  \n\n\t- Fine.\r\n\r\n    1) Bye!\n\n"
    layout = split(text, "en")
    filled = layout.fill([piece.upper() for piece in layout.pieces])
    assert filled == "\n  HELLO. HOW ARE YOU?  \n\n\t- FINE.\r\n\r\n    1) BYE!\n\n"
    assert layout.linked == (False,) * 4


def test_a_sentence_too_long_is_cut_behind_punctuation():
    text = "The first part of it is here; the second, with a comma, is here and has no end"
    layout = split(text, "en", lambda piece: len(piece) <= 50)
    assert layout.pieces[0] == "The first part of it is here;"


def test_translations_must_be_as_many_as_pieces():
    with pytest.raises(ValueError, match="2 pieces"):
        split("One. Two.", "en").fill(["Eins."])


def test_time_grows_with_the_length_alone():
    for text in ["x" * 20_000, "a. " * 6_000, "- " * 10_000, " " * 20_000, "1. \n" * 5_000]:
        layout = split(text, "en", lambda piece: len(piece) < 200)
        assert layout.fill(layout.pieces) == text


def test_without_the_splitter_a_line_is_cut_only_where_it_is_too_long(monkeypatch):
    monkeypatch.setattr("heedful.text.sentences.segment", None)
    text = "A dog. A cat. A cow."
    assert split(text, "en").pieces == (text,)
    pieces = split(text, "en", lambda piece: len(piece) < 8).pieces
    assert pieces == ("A dog.", "A cat.", "A cow.")


UNBROKEN = re.compile(r"\{\{.*?\}\}|St\. Gallen|https?://\S+|\d+\.\d+")
HELD_BITS = st.sampled_from(
    [
        "{{ a. B }}",
        "St. Gallen",
        "https://x.org/a.b?c=d,e",
        "3.14",
        "A dog. ",
        "B, c ",
        "x" * 9,
        " ",
    ]
)


def held_spans(text):
    return [match.span() for match in UNBROKEN.finditer(text)]


@given(st.lists(HELD_BITS, max_size=12).map("".join), st.integers(1, 30))
def test_no_cut_falls_inside_what_is_held(text, most):
    # What is held costs nothing, as the model does not see it.
    rule = CutRule(lambda piece: len(UNBROKEN.sub("", piece)) <= most, held_spans)
    for layout in (split(text, "en", rule), keep_whole(text, rule)):
        parts = [part for both in zip_longest(layout.gaps, layout.pieces) for part in both if part]
        assert "".join(parts) == text or layout.gaps[1:-1] == ()
        for start, end in held_spans(text):
            assert any(text[start:end] in part for part in parts)


def test_sentences_are_joined_over_a_part_that_may_not_be_cut():
    rule = CutRule(lambda piece: True, held_spans)
    text = "A dog in {{ Mr. X. Y }} sleeps. A cat stays."
    assert split(text, "en", rule).pieces == ("A dog in {{ Mr. X. Y }} sleeps.", "A cat stays.")


def test_a_part_that_is_longer_than_the_model_reads_is_cut():
    rule = CutRule(lambda piece: len(piece) <= 8, lambda text: [(0, len(text))])
    assert "".join(split("x" * 30, "en", rule).pieces) == "x" * 30
    assert max(map(len, split("x" * 30, "en", rule).pieces)) <= 8
