"""Language detection, and its calibrated confidence."""

import lzma
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.serve.documents.detect import detect

SERVED = ["en", "de", "fr"]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The weather is nice today.", "en"),
        ("Das Wetter ist heute schön.", "de"),
        ("Il fait beau aujourd'hui.", "fr"),
        ("DAS WETTER IST HEUTE SCHÖN.", "de"),
    ],
)
def test_a_sentence_is_told(text, language):
    best, *others = detect(text, SERVED)
    assert best.language == language
    assert best.confidence > 95
    assert {one.language for one in others} == set(SERVED) - {language}


@pytest.mark.parametrize("text", ["", " \n", "42", "?!", "😀"])
def test_nothing_is_known_of_no_text(text):
    assert {guess.confidence for guess in detect(text, SERVED)} == {0.0}


@pytest.mark.parametrize(
    "text", ["Dobrý den, jak se máte?", "これは何ですか。", "Привет, как дела?"]
)
def test_text_in_another_language_is_not_claimed(text):
    assert max(guess.confidence for guess in detect(text, SERVED)) < 5


def test_a_word_of_many_languages_gives_doubt():
    assert detect("hotel", SERVED)[0].confidence < 90
    assert detect("the", SERVED)[0].confidence < 90


def test_languages_are_known_by_their_first_part():
    best = detect("Está muito frio hoje, não acha?", ["pt-BR", "en", "xx"])[0]
    assert best.language == "pt-BR"
    assert best.confidence > 90
    assert detect("Hei, hvordan har du det i dag?", ["nb", "en"])[0].language == "nb"
    assert detect("Hello there", ["xx"]) == [("xx", 0.0)]


@given(st.text())
def test_confidences_are_percent_and_in_order(text):
    guesses = detect(text, SERVED)
    numbers = [guess.confidence for guess in guesses]
    assert numbers == sorted(numbers, reverse=True)
    assert all(0 <= number <= 100 for number in numbers)
    assert sum(numbers) <= 100.2
    assert sorted(guess.language for guess in guesses) == sorted(SERVED)


@pytest.mark.parametrize("words", [1, 2, 4])
def test_confidence_is_never_far_above_how_often_it_is_right(corpora, words):
    sure = {low: [] for low in (50, 70, 80, 90, 98)}
    for language in ("en", "de"):
        with lzma.open(
            corpora / f"tatoeba-en-de/dev.{language}.xz", "rt", encoding="utf-8"
        ) as file:
            for line in file:
                text = " ".join(re.findall(r"[^\W\d_]+", line)[:words])
                best = detect(text, ["en", "de"])[0]
                low = max((low for low in sure if low <= best.confidence), default=None)
                if low:
                    sure[low].append((best.confidence, best.language == language))
    for found in sure.values():
        if len(found) >= 50:
            confidence = sum(number for number, _ in found) / len(found)
            right = 100 * sum(is_right for _, is_right in found) / len(found)
            assert confidence < right + 8, (confidence, right, len(found))


@pytest.mark.parametrize("text", ["hello handsome", "hello", "OK", "Ciao!", "merci", "e", "今日は"])
def test_one_or_two_short_words_are_never_sure(text):
    assert max(guess.confidence for guess in detect(text, ["en", "fr", "it", "ja"])) <= 80


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        ("hello handsome", {"en", "vi", "sr"}),
        ("今日は", {"ja"}),
        ("私は東京に住んでいます。", {"ja"}),
        ("我们不吃苹果。", {"zh", "ja", "ko"}),
        ("привет", {"ru", "bg", "sr"}),
        ("iPhone на столе", {"ru", "bg", "sr"}),
        ("γειά", {"el"}),
        ("안녕", {"ko"}),
        ("নমস্কার", {"bn"}),
        ("नमस्ते", {"hi"}),
        ("مرحبا", {"ar"}),
    ],
)
def test_no_language_of_another_script_is_guessed(text, languages):
    every = ["en", "vi", "sr", "ja", "zh", "ko", "ru", "bg", "el", "bn", "hi", "ar"]
    guesses = detect(text, every)
    assert {guess.language for guess in guesses if guess.confidence > 0} <= languages
    assert guesses[0].confidence > 0


def test_longer_words_of_a_script_of_its_own_are_sure():
    assert detect("私は東京の大学で英語を勉強しています。", ["ja", "zh", "en"])[0].confidence > 95
    assert all(isinstance(guess.confidence, float) for guess in detect("hello", SERVED))


@pytest.mark.parametrize("text", ["hello", "the red dog", "Guten Morgen"])
def test_emoji_and_arrows_do_not_change_the_language(text):
    for symbols in ("🙂", "👨\u200d👩\u200d👧", "❤\ufe0f", "→", "👍🏽🎉"):
        assert detect(f"{symbols} {text} {symbols}", SERVED) == detect(text, SERVED)
