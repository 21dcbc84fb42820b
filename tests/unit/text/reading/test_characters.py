import pytest

from heedful.text.reading.characters import (
    _CONTROL,
    _DROPPED,
    read_source_characters,
    read_target_characters,
    visible,
)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (" the\u00a0big\u202f \u3000red\tdog ", "the big red dog"),
        ("\ufeffthe re\u00add\u200b dog\u2060\u200e", "the red dog"),
        ("Cafe\u0301", "Café"),
        ("a\u200db c\u200cd", "ab cd"),
        ("the \u202adog\u202c", "the dog"),
        ("big\x1bred\x07dog\x7f", "big red dog"),
        ("big\u2028red\x85dog", "big red dog"),
    ],
)
def test_a_source_line_is_read_without_what_shows_nothing(text, read):
    assert read_source_characters(text) == read


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم",  # Persian: two parts of one word
        "क्\u200dष",  # Devanagari: a half letter
        "👩\u200d👩\u200d👧",
        "🏳\ufe0f\u200d🌈",
        "👍🏽",
    ],
)
def test_a_joiner_stays_where_it_chooses_a_form(text):
    assert visible(text) == text


def test_nothing_that_is_printable_is_dropped_or_replaced():
    printable = "".join(filter(str.isprintable, map(chr, range(0x110000))))
    assert not [*_DROPPED.finditer(printable), *_CONTROL.finditer(printable)]
    assert visible("Cafe\u0301") == "Café"


def test_a_given_translation_keeps_single_no_break_spaces():
    assert read_target_characters(" Quoi\u202f?\u200b  Rie\u0301n ") == "Quoi\u202f? Rién"
