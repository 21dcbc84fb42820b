"""Messages control nothing but themselves."""

import unicodedata

import pytest

from heedful.errors import ArgumentError, HeedfulError, TextError, escape_controls

BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def test_whatever_controls_a_terminal_is_written_as_its_number():
    letters = [chr(number) for number in range(0x110000)]
    controls = {
        letter
        for letter in letters
        if unicodedata.category(letter) == "Cc" or unicodedata.bidirectional(letter) in BIDI
    } - {"\n", "\t"}
    assert len(controls) == 63 + 9
    for letter in controls:
        assert escape_controls(f"a{letter}b") == f"a{letter.encode('unicode_escape').decode()}b"
    changed = {letter for letter in letters if escape_controls(letter) != letter}
    assert changed - controls == {*"\u061c\u200e\u200f\u2028\u2029\ufeff"}


@pytest.mark.parametrize("kind", [HeedfulError, TextError, ArgumentError])
def test_a_message_of_any_error_is_escaped_and_one_paragraph(kind):
    error = kind("the file \u2067a\x1b]0;b\x07\u2069 must exist,\n\tbut \u0627\u200c\u0644 is not")
    assert str(error) == (
        "the file \\u2067a\\x1b]0;b\\x07\\u2069 must exist, but \u0627\u200c\u0644 is not"
    )
    assert f"{error}" == str(error)


def test_a_message_that_quotes_a_large_value_is_cut_between_what_is_wrong_and_what_to_do():
    text = str(TextError(f"the beam must be a number, but is {'a' * 100_000}. Correct the file."))
    assert text.startswith("the beam must be a number, but is aaa")
    assert text.endswith("aaa. Correct the file.")
    assert " … " in text
    assert len(text) < 3100
