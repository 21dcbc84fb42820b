"""Refused T5 folders and their messages; tests/parity compares models."""

import json
import shutil

import pytest
import safetensors.torch

from heedful.errors import ExchangeError
from heedful.exchange.formats import ReadOptions
from heedful.exchange.t5.read import read
from heedful.tokenization.special_symbols import START
from tests.support.t5 import PREFIX, make

pytestmark = pytest.mark.family("relative_buckets", "rms_norm")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("t5") / "theirs"
    make(folder)
    return folder


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "theirs")


def complaint(folder, **options):
    with pytest.raises(ExchangeError) as caught:
        read(folder, ReadOptions(**options))
    message = str(caught.value)
    assert "\n" not in message
    return message


def change(path, **settings):
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}), encoding="utf-8")


def test_wrong_settings_are_named_together(folder):
    change(
        folder / "config.json",
        model_type="umt5",
        feed_forward_proj="gated-tanh",
        d_kv=0,
        num_layers="2",
        dropout_rate=1,
        layer_norm_epsilon="small",
    )
    message = complaint(folder)
    for part in ("t5 or mt5, but is 'umt5'", "'gated-tanh'", "d_kv", "num_layers", "dropout_rate"):
        assert part in message
    assert "layer_norm_epsilon must be" in message


@pytest.mark.parametrize(("count", "most"), [(3, 9), (8, 4), (10**6, 10**6)])
def test_buckets_that_cannot_be_computed_are_refused(folder, count, most):
    change(
        folder / "config.json",
        relative_attention_num_buckets=count,
        relative_attention_max_distance=most,
    )
    assert f"but they are {count:,} and {most:,}" in complaint(folder)


def test_sizes_beyond_the_tensors_are_refused_before_anything_is_made(folder):
    names = ("vocab_size", "d_model", "d_kv", "d_ff", "num_layers", "num_heads")
    change(folder / "config.json", **dict.fromkeys((*names, "num_decoder_layers"), 10**12))
    message = complaint(folder)
    assert all(f"{name} is 1,000,000,000,000" in message for name in names)


def test_other_tensors_are_named(folder):
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    tensors["encoder.block.0.layer.0.SelfAttention.q.bias"] = tensors["shared.weight"][0].clone()
    del tensors["decoder.final_layer_norm.weight"]
    safetensors.torch.save_file(tensors, path)
    message = complaint(folder)
    assert "missing: decoder.final_layer_norm.weight" in message
    assert "not expected: encoder.block.0.layer.0.SelfAttention.q.bias" in message


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"eos_token_id": [1, 5]}, "the id of the end symbol must be an id"),
        (
            {"decoder_start_token_id": 10**6},
            "decoder_start_token_id must be the id of the padding symbol, the end symbol",
        ),
        ({"pad_token_id": -1}, "the id of the pad symbol must be an id"),
    ],
    ids=str,
)
def test_special_ids_are_checked(folder, settings, words):
    (folder / "generation_config.json").unlink()
    change(folder / "config.json", **settings)
    assert words in complaint(folder)


def test_searches_that_are_none_of_ours_are_refused(folder):
    read(folder, ReadOptions())
    assert read(folder, ReadOptions(task="summarization")).config.search.no_repeat_ngram == 3
    change(folder / "generation_config.json", do_sample=True)
    assert "do_sample = True" in complaint(folder)


def test_tasks_are_named(folder):
    message = complaint(folder, task="translation_en_to_de")
    assert "--task must name a task of the model (summarization, translation_en_to_fr" in message
    message = complaint(folder, task="summarization", source_prefix="sum: ")
    assert "--task and --source-prefix must not be given together" in message
    assert "at most 1,000 characters" in complaint(folder, source_prefix="x" * 1001)
    change(folder / "config.json", task_specific_params=["translation"])
    assert "task_specific_params must contain a table" in complaint(folder)


def test_the_table_has_a_row_for_the_start_symbol(tmp_path):
    make(tmp_path / "rows")
    model = read(tmp_path / "rows", ReadOptions()).tokenizer.models[0]
    assert model.piece(START) == f"<row_{model.size - 3}>"
    make(tmp_path / "sentinels", rows=0)
    model = read(tmp_path / "sentinels", ReadOptions()).tokenizer.models[0]
    assert model.piece(START) == "<extra_id_19>"
    make(tmp_path / "full", rows=0, extra_ids=0)
    assert "must have a free row" in complaint(tmp_path / "full")


def test_a_decoder_may_start_with_a_symbol_of_its_own(folder):
    change(folder / "generation_config.json", decoder_start_token_id=7)
    bundle = read(folder, ReadOptions())
    assert bundle.config.model.decoder_start == "symbol"
    assert bundle.tokenizer.models[0].id_mapping.origins[START] == 7
    change(folder / "generation_config.json", decoder_start_token_id=1)
    assert read(folder, ReadOptions()).config.model.decoder_start == "end"


def test_added_tokens_are_refused(folder):
    added = {"9": {"content": "<extra_id_3>"}, "230": {"content": "[NEW]"}}
    change(folder / "tokenizer_config.json", added_tokens_decoder=added)
    message = complaint(folder)
    assert "'[NEW]' were added" in message and "<extra_id_3>" not in message
    change(folder / "tokenizer_config.json", added_tokens_decoder={}, extra_ids=-1)
    assert "extra_ids" in complaint(folder)


def test_a_prefix_is_part_of_the_tokenizer(folder, tmp_path):
    bundle = read(folder, ReadOptions(source_prefix=PREFIX))
    assert bundle.tokenizer.source_prefix == PREFIX
    assert bundle.config.data.source_language == "en"
    (first,), (other,) = (
        read(folder, options).tokenizer.encode_source(["the dog"])
        for options in (ReadOptions(source_prefix=PREFIX), ReadOptions())
    )
    assert first[-len(other) :] == other and len(first) > len(other)


def test_files_that_are_missing_are_named(folder, tmp_path):
    (folder / "spiece.model").unlink()
    assert "lacks spiece.model" in complaint(folder)
    assert "must be a folder, but" in complaint(tmp_path / "nothing")


@pytest.mark.parametrize("start", [[0], {}, True, "x", 10**30])
def test_a_start_that_is_no_special_symbol_is_refused(folder, start):
    change(folder / "generation_config.json", decoder_start_token_id=start)
    assert "decoder_start_token_id must be the id of the padding symbol" in complaint(folder)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("dense_act_fn", "gelu_new", "dense_act_fn must be relu, as feed_forward_proj implies"),
        ("is_gated_act", True, "is_gated_act must be False, as feed_forward_proj implies"),
        ("tie_word_embeddings", False, "but the weights have no lm_head.weight"),
    ],
)
def test_settings_that_others_contradict_are_refused(folder, name, value, message):
    change(folder / "config.json", **{name: value})
    assert message in complaint(folder)
