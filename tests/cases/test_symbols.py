"""Emoji and letters that the model never saw vanish, or pull the sentence away."""

import pytest

PLAIN = "the big red dog"
SYMBOLS = ["👍", "👍🏽", "👩\u200d👩\u200d👧", "→", "♪", "犬", "🇫🇷", "★★", "собака", "½", "/ˈɹɛd/"]


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_a_symbol_at_an_end_stays_there_and_the_rest_is_as_without(translate, symbol):
    plain, behind, before = translate([PLAIN, f"{PLAIN} {symbol}", f"{symbol} {PLAIN}"])
    assert behind == f"{plain} {symbol}"
    assert before == f"{symbol} {plain}"


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_a_symbol_inside_is_in_the_translation_once(translator, symbol):
    plain, result = translator.translate(["my boy sees a dog", f"my boy {symbol} sees a dog"])
    assert result.text.split(" ").count(symbol) == 1
    assert result.text.replace(f" {symbol}", "", 1).replace(f"{symbol} ", "", 1) == plain.text
    assert [held.text for held in result.reading.held] == [symbol]


@pytest.mark.parametrize("line", ["👍", "2016-03-19", "12 %", "→ ★", "...", "- - -"])
def test_a_line_without_a_letter_is_copied(translator, line):
    (result,) = translator.translate([line])
    assert result.text == line and result.reading.copied


def test_nothing_unknown_is_ever_written(translate):
    assert not any("⁇" in text for text in translate([f"{PLAIN} {symbol}" for symbol in SYMBOLS]))


def test_of_a_number_before_a_word_only_the_number_is_held(translator):
    result = translator.translate("my boy sees a 3-dog")
    assert result.text.split(" ").count("3") == 1 and "3-" not in result.text
    for name in ("F-16", "CO2", "1990s"):
        assert translator.translate(f"my boy sees a {name}").text.count(name) == 1
