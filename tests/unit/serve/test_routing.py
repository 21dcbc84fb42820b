"""Codes of languages as clients write them."""

from heedful.serve.routing import same_language

KNOWN = ["auto", "en", "pt-BR", "zh_Hant", "de"]


def test_case_and_country_do_not_matter():
    asked = ["EN", "en-US", "en_gb", "En-001", "pt-br", "PT_BR", "zh-hant", "AUTO", "de"]
    found = ["en", "en", "en", "en", "pt-BR", "pt-BR", "zh_Hant", "auto", "de"]
    assert [same_language(code, KNOWN) for code in asked] == found


def test_another_language_or_script_is_not_taken_for_one():
    for code in ("zh", "de-Latn", "pt", "e", "", "english", "en-"):
        assert same_language(code, KNOWN) == code


def test_the_country_counts_where_it_is_known():
    assert same_language("pt-PT", ["pt", "pt-BR"]) == "pt"
    assert same_language("pt-BR", ["pt", "pt-BR"]) == "pt-BR"
