"""A client names a language by another code than the server: zh-Hans, eng, pt-BR, zt."""

import pytest

from tests.support.serving import serving


@pytest.fixture(scope="module")
def server(zygote, toy_run):
    with serving(zygote, f"en:zh={toy_run}", f"fr:en={toy_run}", f"en:pt={toy_run}") as server:
        yield server


def answer(server, source, target, text="the red dog sleeps"):
    body = {"q": text, "source": source, "target": target}
    return server.client.post("/translate", json=body)


@pytest.mark.parametrize("target", ["zh", "zh-Hans", "zh-hans-cn", "zh_CN", "zho", "cmn", "zh-SG"])
def test_a_variant_reaches_the_plain_code(server, target):
    plain = answer(server, "en", "zh").json()
    assert plain["translatedText"] != "the red dog sleeps"
    assert answer(server, "en", target).json() == plain
    assert server.client.post(
        "/v1/translate", json={"q": "the dog", "source": "eng", "target": target}
    ).is_success


@pytest.mark.parametrize("source", ["en", "EN", "en-US", "en_GB", "eng", "eng_Latn", "en_US.UTF-8"])
def test_so_does_one_of_the_source(server, source):
    for target in ("pt-BR", "por", "pb"):
        assert answer(server, source, target).is_success


@pytest.mark.parametrize("target", ["zh-Hant", "zh-TW", "zh_HK", "zt", "zho_Hant", "en-Cyrl"])
def test_another_script_is_refused_with_the_codes(server, target):
    refused = answer(server, "en", target)
    assert refused.status_code == 400
    assert "written in another script" in refused.json()["error"]
    assert "(zh, en, pt)" in refused.json()["error"]


def test_what_is_no_code_is_refused_with_the_codes(server):
    refused = answer(server, "english", "zh")
    assert refused.status_code == 400
    assert "(en)" in refused.json()["error"]
    assert "(zh, en, pt)" in answer(server, "en", "klingon").json()["error"]


@pytest.mark.parametrize(
    ("source", "target"), [("en", "en"), ("eng", "en-GB"), ("fr", "fr"), ("zh-CN", "zh")]
)
def test_a_text_in_the_wanted_language_comes_back(server, source, target):
    text = "  nothing: new\n\nhere "
    assert answer(server, source, target, text).json() == {"translatedText": text}


def test_a_score_has_the_tokenizer_of_the_language(heedful_cli, tmp_path):
    file = tmp_path / "text"
    file.write_text("我们不吃苹果。\n那只大红狗睡觉。\n", encoding="utf-8")
    for code in ("zh", "zho_Hans", "cmn", "zh-CN", "zt"):
        done = heedful_cli(
            "evaluate", "--hypothesis", file, "--reference", file, "--language", code
        )
        assert "tok:zh" in done.stdout
