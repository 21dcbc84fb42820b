"""Codes of languages as clients write them."""

import pytest

from heedful.text.language_codes import (
    TWO_LETTERS,
    in_another_script,
    language_of_code,
    look_up,
    parse_code,
)

KNOWN = ["auto", "en", "pt-BR", "zh_Hant", "de"]
PLAIN = ["en", "zh", "pt", "sr", "ja", "ko", "nb", "he", "id", "tl"]


@pytest.mark.parametrize(
    ("code", "known"),
    [
        ("EN", "en"),
        ("en-US", "en"),
        ("en_gb", "en"),
        ("En-001", "en"),
        ("en_US.UTF-8", "en"),
        ("eng", "en"),
        ("eng_Latn", "en"),
        ("en-Latn-GB-oxendict-u-ca-gregory", "en"),
        ("pt-br", "pt-BR"),
        ("PT_BR", "pt-BR"),
        ("pb", "pt-BR"),
        ("por", "pt-BR"),
        ("pt-PT", "pt-BR"),
        ("zh-hant", "zh_Hant"),
        ("zh-TW", "zh_Hant"),
        ("zt", "zh_Hant"),
        ("cmn_Hant", "zh_Hant"),
        ("AUTO", "auto"),
        ("ger", "de"),
        ("de-Latn", "de"),
        ("de-CH-1996", "de"),
    ],
)
def test_another_form_of_a_code_reaches_it(code, known):
    assert look_up(code, KNOWN) == known


@pytest.mark.parametrize(
    ("code", "known"),
    [
        ("zh-Hans", "zh"),
        ("zh-hans-cn", "zh"),
        ("zh-CN", "zh"),
        ("zh_CN", "zh"),
        ("zh-SG", "zh"),
        ("zho", "zh"),
        ("chi", "zh"),
        ("cmn", "zh"),
        ("zh-cmn-Hans-SG", "zh"),
        ("zho_Hani", "zh"),
        ("sr-Cyrl-RS", "sr"),
        ("sr_RS@cyrillic", "sr"),
        ("srp", "sr"),
        ("jpn_Jpan", "ja"),
        ("ko-Kore", "ko"),
        ("kor_Hang", "ko"),
        ("no", "nb"),
        ("nob_Latn", "nb"),
        ("iw", "he"),
        ("in", "id"),
        ("fil", "tl"),
        ("pt-BR", "pt"),
        ("por", "pt"),
        ("pb", "pt"),
    ],
)
def test_a_more_special_code_falls_back_to_the_plain_one(code, known):
    assert look_up(code, PLAIN) == known


def test_another_language_is_not_taken_for_a_known_one():
    for code in ("ru", "e", "", "english", "en-", "zh-yue", "nn", "gsw", "tgt", "-", "@"):
        assert look_up(code, PLAIN) is None
        assert in_another_script(code, PLAIN) is None


@pytest.mark.parametrize(
    ("code", "near"),
    [
        ("zh-Hant", "zh"),
        ("zh-TW", "zh"),
        ("zh_HK", "zh"),
        ("zt", "zh"),
        ("zho_Hant", "zh"),
        ("sr-Latn", "sr"),
        ("sh", "sr"),
        ("sr_RS@latin", "sr"),
        ("en-Cyrl", "en"),
    ],
)
def test_another_script_is_refused_and_named(code, near):
    assert look_up(code, PLAIN) is None
    assert in_another_script(code, PLAIN) == near


def test_a_model_that_claims_the_variant_has_it():
    assert look_up("pt-PT", ["pt", "pt-BR"]) == "pt"
    assert look_up("pt-BR", ["pt", "pt-BR"]) == "pt-BR"
    assert look_up("por_BR", ["pt", "pt-BR"]) == "pt-BR"
    assert look_up("zh-HK", ["zh", "zh-TW", "zh-HK"]) == "zh-HK"
    assert look_up("zh-MO", ["zh", "zh-TW"]) == "zh-TW"
    assert look_up("zh", ["zh-TW", "zh-Hans"]) == "zh-Hans"
    assert look_up("zh", ["zh-TW"]) is None
    assert look_up("de-1901", ["de", "de-1996", "de-1901"]) == "de-1901"


def test_the_language_of_a_code_has_two_letters_where_it_can():
    codes = ["deu", "ger", "de-AT", "zho_Hans", "pb", "gsw", "train", "sr_RS@latin", ""]
    assert [*map(language_of_code, codes)] == [
        *["de", "de", "de", "zh", "pt", "gsw", "train", "sr", ""]
    ]


def test_every_code_of_two_letters_means_itself_or_a_newer_one():
    renamed = {code for code in TWO_LETTERS if language_of_code(code) != code}
    assert renamed == {"in", "iw", "ji", "jw", "mo", "no", "pb", "sh", "zt"}
    assert all(parse_code(code).language in TWO_LETTERS for code in TWO_LETTERS)
    assert all(look_up(code, [code]) == code for code in TWO_LETTERS)


@pytest.mark.parametrize(
    ("code", "known", "meant"),
    [
        ("ceb", ["eng_Latn", "ceb_Latn"], "ceb_Latn"),
        ("ckb", ["kmr_Latn", "ckb_Arab"], "ckb_Arab"),
        ("taq", ["taq_Latn", "taq_Tfng"], None),
        ("ceb_Cyrl", ["ceb_Latn"], None),
        ("ceb_Latn", ["ceb"], None),
        ("qu", ["quy_Latn"], "quy_Latn"),
        ("ff", ["fuv_Latn"], "fuv_Latn"),
        ("sq", ["als_Latn"], "als_Latn"),
    ],
)
def test_a_language_whose_script_is_not_known_here_has_the_one_that_it_is_known_in(
    code, known, meant
):
    assert look_up(code, known) == meant
