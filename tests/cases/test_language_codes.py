"""A client names a language by another code than the server: zh-Hans, eng, pt-BR, zt."""

# Every form of a code: tests/unit/text/test_language_codes.py.

import pytest

from tests.support.serving import serving


@pytest.fixture(scope="module")
def server(zygote, toy_run):
    with serving(zygote, f"en:zh={toy_run}", f"fr:en={toy_run}", f"en:pt={toy_run}") as server:
        yield server


def answer(server, source, target, text="the red dog sleeps"):
    body = {"q": text, "source": source, "target": target}
    return server.client.post("/translate", json=body)


def test_a_variant_reaches_the_plain_code(server):
    plain = answer(server, "en", "zh").json()
    assert plain["translatedText"] != "the red dog sleeps"
    assert answer(server, "en", "zh-Hans").json() == plain
    body = {"q": "the dog", "source": "eng", "target": "zho"}
    assert server.client.post("/v1/translate", json=body).is_success


def test_so_does_one_of_the_source(server):
    assert answer(server, "en_US.UTF-8", "pb").is_success


def test_another_script_is_refused_with_the_codes(server):
    refused = answer(server, "en", "zt")
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
    files = ("--hypothesis", file, "--reference", file)
    done = heedful_cli("evaluate", *files, "--language", "zho_Hans")
    assert "tok:zh" in done.stdout
