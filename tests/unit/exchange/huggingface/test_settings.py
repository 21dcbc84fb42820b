"""Checks that the readers of all classes share; the classes' own tests read whole folders."""

import json

import pytest
import torch

from heedful.errors import ExchangeError
from heedful.exchange.formats import Problems
from heedful.exchange.huggingface import settings


def test_missing_files_are_named_together_and_any_layout_of_weights_will_do(tmp_path):
    with pytest.raises(ExchangeError, match=r"lacks config\.json, a\.spm, model\.safetensors;"):
        settings.check_files(tmp_path, ["a.spm"], "Marian")
    for name in ("config.json", "pytorch_model.bin.index.json", "a.spm"):
        (tmp_path / name).write_text("{}")
    settings.check_files(tmp_path, ["a.spm"], "Marian")
    with pytest.raises(ExchangeError, match="a T5 model must be a folder"):
        settings.check_files(tmp_path / "a.spm", (), "T5")


@pytest.mark.parametrize(
    ("file", "lists"),
    [
        ("added_tokens.json", lambda tokens: dict.fromkeys(tokens, 1)),
        ("tokenizer.json", lambda tokens: {"added_tokens": tokens}),
        ("tokenizer_config.json", lambda tokens: {"added_tokens_decoder": dict.fromkeys(tokens)}),
        ("special_tokens_map.json", lambda tokens: {"additional_special_tokens": tokens}),
    ],
)
def test_a_tokenizer_that_would_be_read_for_hours_is_refused(file, lists, tmp_path):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    tokens = [f"<{number}>" for number in range(10_001)]
    (tmp_path / file).write_text(json.dumps(lists(tokens[:-1])))
    settings.check_files(tmp_path, [], "BART")
    (tmp_path / file).write_text(json.dumps(lists(tokens)))
    with pytest.raises(ExchangeError, match=r"at most 10,000 tokens .* but adds 10,001"):
        settings.check_files(tmp_path, [], "BART")


def test_values_are_checked_together():
    reasons = Problems()
    values = {"model_type": "bert", "layers": True, "width": 0}
    settings.check_type(values, ("mbart", "bart"), reasons)
    settings.check_counts(values, ("layers", "width", "heads"), reasons)
    settings.check_rate(1, "dropout", reasons)
    assert len(reasons.messages) == 5
    assert reasons.messages[0] == "model_type must be mbart or bart, but is 'bert'"
    fine = {"model_type": "bart", "layers": 1, "width": 2, "heads": 1}
    reasons = Problems()
    settings.check_type(fine, ("mbart", "bart"), reasons)
    settings.check_counts(fine, ("layers", "width", "heads"), reasons)
    settings.check_rate(0.0, "dropout", reasons)
    assert reasons.messages == []


def test_sizes_are_bounded_by_the_tensors(tmp_path):
    tensors = {"a": torch.zeros(5, 3), "b": torch.zeros(())}
    sizes = {"vocab_size": 5, "width": 5, "layers": 2, "max_position_embeddings": 9}
    settings.check_sizes(sizes, tensors, tmp_path, ("width",), ("layers",))
    large = {"vocab_size": 6, "width": 6, "layers": 3, "max_position_embeddings": 10**9}
    wrong = r"vocab_size is 6; width is 6; layers is 3; max_position_embeddings is 1"
    with pytest.raises(ExchangeError, match=wrong):
        settings.check_sizes(large, tensors, tmp_path, ("width",), ("layers",))


def test_special_ids_are_those_of_generate(tmp_path):
    config = {"eos_token_id": 1, "pad_token_id": 2}
    assert settings.generation_settings(tmp_path, config) == config
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [3]}))
    generation = settings.generation_settings(tmp_path, config)
    merged = settings.with_special_ids(config, generation)
    assert merged == {"eos_token_id": [3], "pad_token_id": 2}
    assert settings.listed_ids({"a": 3, "b": [4]}, "a") == []
    assert settings.listed_ids({"a": 3, "b": [4]}, "b") == [4]


def test_a_symbol_is_spelled_plainly_or_as_a_record():
    spelled = {"pad_token": "<p>", "eos_token": {"content": "<e>"}, "unk_token": {}}
    names = ("pad_token", "eos_token", "unk_token", "bos_token")
    assert [settings.spelling(spelled, name, "?") for name in names] == ["<p>", "<e>", "?", "?"]
