import pytest

from heedful.runs.language_pair import LanguagePair

APART = [
    (("en", "fr"), ("fr", "en")),
    (("en", "fr"), ("en", "it")),
    (("de", "fr"), ("en", "fr")),
    (("eng", "fra"), ("fra", "eng")),
    (("eng_Latn", "fra_Latn"), ("eng_Latn", "deu_Latn")),
    (("pt-BR", "en"), ("en", "pt-PT")),
    (("src", "tgt"), ("tgt", "src")),
    (("left", "right"), ("right", "left")),
]
TOGETHER = [
    (("en", "fr"), ("en", "fr")),
    (("en", "fr"), ("EN", "fr-CA")),
    (("pt_BR", "en"), ("pt_PT", "en-GB")),
    (("en", "fr"), ("", "")),
    (("", ""), ("", "")),
    (("en", "fr"), ("src", "tgt")),
    (("txt", "txt"), ("txt", "txt")),
    (("en", "fr"), ("eng", "fra")),
    (("words", "trees"), ("text", "brackets")),
    (("en", "en"), ("en", "en")),
]


@pytest.mark.parametrize(("first", "second"), APART)
def test_directions_that_certainly_differ_contradict(first, second):
    assert LanguagePair(*first).contradicts(LanguagePair(*second))
    assert LanguagePair(*second).contradicts(LanguagePair(*first))


@pytest.mark.parametrize(("first", "second"), TOGETHER)
def test_directions_that_may_be_one_do_not(first, second):
    assert not LanguagePair(*first).contradicts(LanguagePair(*second))
    assert not LanguagePair(*second).contradicts(LanguagePair(*first))


def test_settings_without_languages_have_no_direction():
    assert LanguagePair.of({}) == LanguagePair("", "")
    named = {"data.source_language": "en", "data.target_language": None}
    assert str(LanguagePair.of(named)) == "en to ?"
