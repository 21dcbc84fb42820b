"""The model and the languages that a request gets."""

import asyncio

import pytest

from heedful.serve.limits import HttpError
from heedful.serve.models import Direction, ModelLoader, Models, ServedModel
from heedful.serve.resident_engine import ResidentEngine
from heedful.serve.routing import choose_route
from heedful.tokenization.tokenizer import Tokenizer
from heedful.tokenization.vocabulary import Vocabulary
from heedful.tokenization.vocabulary_model import VocabularyModel
from heedful.translation.reading import TextReader


class NoEngine:
    """An engine that is never used."""

    tokenizer = Tokenizer(
        VocabularyModel(Vocabulary(["w"])), source_language="", target_language=""
    )

    reader = TextReader(tokenizer, list, reads_text=False, longest=100, aligns=False)

    def translate(self, texts, options=None, **how):
        raise NotImplementedError


def models(*pairs):
    served = Models([], ModelLoader())
    resident = ResidentEngine("none", NoEngine(), NoEngine)
    served.current = tuple(
        ServedModel(
            f"{source}-{target}",
            "torch",
            resident,
            (Direction(source, target, ""),),
            NoEngine.reader,
            {},
        )
        for source, target in pairs
    )
    return served


def route(served, source, target, text="the dog"):
    return asyncio.run(choose_route(served, [text], source, target))[0]


def refusal(served, source, target):
    with pytest.raises(HttpError) as caught:
        route(served, source, target)
    assert caught.value.status == 400
    return caught.value.text


def test_a_variant_reaches_the_model_of_the_plain_code():
    served = models(("en", "zh"), ("fr", "en"))
    for source in ("en", "EN", "eng", "en_GB"):
        for target in ("zh", "zh-Hans", "zh_CN", "zho", "cmn"):
            assert route(served, source, target).name == "en-zh"


def test_another_model_may_claim_the_variant():
    served = models(("en", "zh"), ("en", "zh-TW"), ("en", "pt"), ("en", "pt-BR"))
    for target, name in {
        "zt": "en-zh-TW",
        "zh-Hant": "en-zh-TW",
        "zh-SG": "en-zh",
        "pb": "en-pt-BR",
        "pt-PT": "en-pt",
    }.items():
        assert route(served, "en", target).name == name


def test_another_script_is_refused_with_the_codes():
    served = models(("en", "zh"), ("en", "sr"))
    for target in ("zh-Hant", "zh-TW", "zt"):
        assert "(zh, sr), but is" in refusal(served, "en", target)
        assert "zh is written in another script" in refusal(served, "en", target)
    assert "sr is written in another script" in refusal(served, "en", "sr-Latn")
    assert "(en), but is 'english'." in refusal(served, "english", "zh")
    assert "target languages (zh, sr), but is 'de'." in refusal(served, "en", "de")


def test_text_in_the_language_that_is_wanted_needs_no_model():
    served = models(("en", "zh"), ("fr", "en"))
    for source, target in (("en", "en"), ("eng", "en-US"), ("fr", "fr"), ("zh", "zh-CN")):
        assert route(served, source, target).model is None
    assert "must be one of" in refusal(served, "de", "de")
    assert "script" in refusal(served, "zh", "zh-TW")


def test_the_source_is_looked_up_among_those_of_the_target():
    served = models(("pt", "en"), ("en", "pt-BR"))
    assert route(served, "pt-BR", "en").name == "pt-en"
    assert route(served, "en", "pt").name == "en-pt-BR"


@pytest.mark.parametrize("text", ["今日は", "Привет, как дела?", "שלום", "ワイン and こんにちは"])
def test_text_in_a_script_of_no_model_is_left_as_it_is(text):
    found = route(models(("en", "fr")), "auto", "fr", text)
    assert found.model is None
    assert found.detected.confidence == 0


def test_a_sentence_in_no_language_of_the_models_is_left_as_it_is():
    served = models(("en", "fr"))
    assert route(served, "auto", "fr", "Ich weiß nicht, was das heute werden soll.").model is None
    assert route(served, "auto", "fr", "le gros chien rouge dort dans la maison").model is None
    for text in ("the big red dog", "dog", "123", "", "hallo", "Kindergarten"):
        assert route(served, "auto", "fr", text).name == "en-fr"
