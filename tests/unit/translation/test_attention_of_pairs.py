"""Attention of given pairs, and of a model's own translations."""

from dataclasses import replace

import numpy as np
import pytest

from heedful.bench.random_run import make_random_run
from heedful.config.schema import RunConfig
from heedful.errors import ArgumentError, SettingError, TextError
from heedful.translation.attention_of_pairs import AttentionOfPairs
from heedful.translation.translator import Translator

SMALL = {"model.d_model": 16, "model.d_ff": 32, "model.heads": 2, "data.vocabulary_size": 50}


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    folder = tmp_path_factory.mktemp("run")
    make_random_run(folder, RunConfig().with_settings(SMALL), 50)
    return Translator.load(folder, device="cpu", precision="fp32", threads=1)


def test_own_and_given_translations_have_the_same_attention(translator: Translator) -> None:
    assert isinstance(translator, AttentionOfPairs)
    own = translator.attend("w1 w2")
    text = translator.translate("w1 w2").text
    given = translator.attend("w1 w2", text)
    assert own.target_tokens == given.target_tokens
    assert np.allclose(own.cross, given.cross, atol=1e-6)
    assert np.allclose(given.cross.sum(-1), 1, atol=1e-5)
    ids = translator.tokenizer.encode_source(["w1 w2"])[0]
    target = translator.tokenizer.encode_target([text])[0]
    assert (translator.attention_of(ids, target).cross == given.cross).all()


def test_sources_that_are_not_translated_as_a_whole(translator: Translator) -> None:
    config = translator.run.config.with_settings(
        {"search.max_source_length": 6, "data.reading": "text"}
    )
    reading = Translator(replace(translator.run, config=config), *translator.models)
    copied = reading.attend("12 13")
    assert copied.target_tokens == reading.attend("12 13", "12 13").target_tokens
    assert len(copied.target_tokens) == 3
    assert reading.attend(" ").target_tokens == reading.attend("", "").target_tokens
    with pytest.raises(TextError, match=r"at most 6 subwords .* was split into 2 parts"):
        reading.attend("w1 w2 w3 w4 w5 w6 w7 w8")


def test_a_model_of_one_direction_refuses_languages(translator: Translator) -> None:
    with pytest.raises(SettingError, match="to_language must fit the model"):
        translator.attend("w1", to_language="de")
    with pytest.raises(ArgumentError, match=r"`from_language` of Translator\.attend must"):
        translator.attend("w1", from_language=3)  # type: ignore[arg-type]
