import pytest

from heedful.text.reading.letter_case import (
    in_case_of,
    is_upper_case,
    lower_case,
    lower_forms,
    upper_case,
    with_capital,
)


@pytest.mark.parametrize("language", ["tr", "tr-TR", "az_AZ", "aze", "tur"])
def test_turkish_and_azeri_have_an_i_with_and_without_a_dot(language):
    assert lower_case("ISPARTA İZMİR I\u0307", language) == "ısparta izmir i"
    assert upper_case("ısparta izmir", language) == "ISPARTA İZMİR"
    assert with_capital("«izmir", language) == "«İzmir"
    assert with_capital("ısı", language) == "Isı"


@pytest.mark.parametrize("language", ["", "en", "de", "kk", "lt", "trv"])
def test_other_languages_follow_unicode(language):
    for text in ("ISPARTA", "İzmir", "Straße", "ılık", "iris"):
        assert lower_case(text, language) == text.lower()
        assert upper_case(text, language) == text.upper()
    assert with_capital("izmir", language) == "Izmir"


def test_the_case_of_a_source_is_given_to_a_translation():
    assert in_case_of("BIG DOG", "straße") == "STRASSE"
    assert in_case_of("STRAßE", "rue") == "RUE"
    assert in_case_of("'Dog", "l'eau") == "L'eau"
    assert in_case_of("A", "un") == "Un"
    assert in_case_of("Rain", "ılık", "tr") == "Ilık"


def test_capitals_of_german_may_be_a_sharp_s():
    assert lower_forms("STRASSE", "de-CH") == ["strasse", "straße"]
    assert lower_forms("STRAßE", "de") == lower_forms("STRAẞE", "de") == ["straße"]
    assert len(lower_forms("MASSSTRASSE", "de")) == 4
    assert lower_forms("Wasser", "de") == ["wasser"] and lower_forms("GLASS", "en") == ["glass"]
    assert is_upper_case("STRAßE") and not is_upper_case("Straße") and not is_upper_case("ß")
