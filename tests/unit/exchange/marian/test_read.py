"""Refused models and their messages; tests/parity compares models."""

import json
import pickle
import shutil
import sys

import pytest
import safetensors.torch
import torch

from heedful.errors import ExchangeError, HeedfulError, MissingExtra
from heedful.exchange.convert import export_model, import_model, read_sentences
from heedful.exchange.extras import import_extra
from heedful.exchange.formats import ReadOptions, WriteOptions
from heedful.exchange.marian.read import read
from heedful.runs.run import Run
from heedful.tokenization.special_symbols import START
from tests.support.marian import make


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian") / "theirs"
    make(folder)
    return folder


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "theirs")


def complaint(folder):
    with pytest.raises(ExchangeError) as caught:
        read(folder, ReadOptions())
    message = str(caught.value)
    assert "\n" not in message
    return message


def change(path, **settings):
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}), encoding="utf-8")


def test_wrong_settings_are_told_together(folder):
    change(
        folder / "config.json",
        model_type="bart",
        activation_function="tanh",
        d_model=17,
        encoder_layers="2",
        dropout=2,
    )
    message = complaint(folder)
    for part in ("marian, but is 'bart'", "'tanh'", "encoder_layers", "dropout must be"):
        assert part in message
    change(folder / "config.json", model_type="marian", activation_function="relu")
    change(folder / "config.json", d_model=18, encoder_layers=2, dropout=0.1)
    assert "encoder_attention_heads must divide d_model" in complaint(folder)


def test_sizes_beyond_the_tensors_are_refused_before_anything_is_made(folder):
    huge = 10**12
    change(folder / "config.json", vocab_size=huge, encoder_layers=huge, d_model=huge)
    change(folder / "config.json", max_position_embeddings=huge, decoder_ffn_dim=huge)
    message = complaint(folder)
    for name in ("vocab_size", "encoder_layers", "d_model", "max_position", "decoder_ffn_dim"):
        assert name in message


def test_searches_that_are_not_ours_are_told_together(folder):
    change(
        folder / "generation_config.json",
        do_sample=True,
        repetition_penalty=1.2,
        length_penalty=-1.0,
        bad_words_ids=[[3, 4]],
        early_stopping="maybe",
        forced_eos_token_id=7,
    )
    message = complaint(folder)
    for part in (
        "do_sample",
        "repetition_penalty",
        "length_penalty",
        "[3, 4]",
        "maybe",
        "but is 7",
    ):
        assert part in message


def test_special_ids_must_be_those_of_the_vocabulary(folder):
    for name in ("config.json", "generation_config.json"):
        change(folder / name, pad_token_id=5, eos_token_id=6, decoder_start_token_id=1)
    message = complaint(folder)
    parts = (
        "288, the id of the padding symbol, but is 5",
        "end symbol, 0, but is 6",
        "decoder_start_token_id must be",
    )
    for part in parts:
        assert part in message


def test_the_start_and_the_ends_are_those_that_generate_goes_by(folder, tmp_path):
    numbers = json.loads((folder / "vocab.json").read_text())
    end, pad = numbers["</s>"], numbers["<pad>"]
    change(folder / "generation_config.json", decoder_start_token_id=end, eos_token_id=[end, pad])
    # `generate` forbids no end among bad_words_ids, so padding would be written and end there.
    assert f"end symbol, {end}, but is [{end}, {pad}]" in complaint(folder)
    change(folder / "generation_config.json", suppress_tokens=[pad])
    parity = import_model("marian", folder, tmp_path / "run")[0].parity
    assert parity.same_outputs == parity.sentences
    assert Run.open(tmp_path / "run").config.model.decoder_start == "end"
    change(folder / "generation_config.json", eos_token_id=[end, 7])
    assert f"id of the end symbol, {end}, but is [{end}, 7]" in complaint(folder)
    change(folder / "generation_config.json", eos_token_id=end, decoder_start_token_id=7)
    change(folder / "config.json", eos_token_id=[end, 8])
    assert read(folder, ReadOptions()).config.model.decoder_start == "symbol"
    change(folder / "generation_config.json", bad_words_ids=7, decoder_start_token_id=[[]])
    assert "must be lists" in complaint(folder)
    change(folder / "config.json", activation_function=[])
    assert "activation_function must be" in complaint(folder)


def test_an_unused_start_symbol_of_the_vocabulary_is_ours(tmp_path):
    make(tmp_path / "theirs", tags=("<s>",))
    report, notes = import_model("marian", tmp_path / "theirs", tmp_path / "run")
    assert report.parity.same_outputs == report.parity.sentences
    assert "heedful never generates <s>, but transformers' generate may" in notes
    run = Run.open(tmp_path / "run")
    assert run.config.model.decoder_start == "pad"
    mapping = run.tokenizer.models[0].id_mapping
    assert (mapping.pieces[START], mapping.origins[START]) == ("<s>", 2)
    export_model(tmp_path / "run", "marian", tmp_path / "back")
    before, after = (tmp_path / name / "vocab.json" for name in ("theirs", "back"))
    assert json.loads(before.read_text()) == json.loads(after.read_text())


def test_a_run_that_cannot_be_opened_is_not_created(folder, tmp_path):
    # The end symbol has the spelling of our start symbol, which this model lacks.
    numbers = json.loads((folder / "vocab.json").read_text())
    renamed = {"<s>" if piece == "</s>" else piece: number for piece, number in numbers.items()}
    (folder / "vocab.json").write_text(json.dumps(renamed), encoding="utf-8")
    change(folder / "tokenizer_config.json", eos_token="<s>")
    with pytest.raises(ExchangeError, match=r"theirs cannot be imported: .*pieces and ids"):
        import_model("marian", folder, tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_without_transformers_a_model_is_imported_but_not_compared(folder, tmp_path, monkeypatch):
    for module in [name for name in sys.modules if name.partition(".")[0] == "transformers"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "transformers", None)
    report, _ = import_model("marian", folder, tmp_path / "run")
    assert report.parity is None
    assert (report.sentences, report.round_trips) == (12, 12)
    assert "results were not compared: Comparing with a Hugging Face model needs" in str(report)
    report.check_outputs(tmp_path / "run")


def test_tensors_that_do_not_fit_are_named_together(folder):
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    del tensors["model.encoder.layers.0.fc1.bias"]
    tensors |= {"strange": torch.rand(1), "final_logits_bias": torch.rand(1, 3)}
    safetensors.torch.save_file(tensors, path)
    message = complaint(folder)
    for part in ("missing: model.encoder.layers.0.fc1.bias", "not expected: strange", "(1, 3)"):
        assert part in message


def test_copies_of_a_tied_table_must_be_equal(folder):
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    copied = {**tensors, "lm_head.weight": tensors["model.shared.weight"].clone()}
    safetensors.torch.save_file(copied, path)
    assert read(folder, ReadOptions()).weights
    safetensors.torch.save_file({**copied, "lm_head.weight": torch.rand(290, 16)}, path)
    message = complaint(folder)
    assert message.startswith("lm_head.weight of")
    assert "must be equal to model.shared.weight" in message


def test_stored_positions_must_be_the_sinusoids(folder):
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    tensors["model.encoder.embed_positions.weight"] = torch.rand(64, 16)
    safetensors.torch.save_file(tensors, path)
    assert "embed_positions.weight must contain the sinusoids" in complaint(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "source.spm", "vocab.json"])
def test_a_file_that_is_not_there_is_named(folder, name):
    (folder / name).unlink()
    assert f"lacks {name}" in complaint(folder)


def test_a_pickle_is_read_and_never_executed(folder):
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    wanted = read(folder, ReadOptions()).weights
    (folder / "model.safetensors").unlink()
    torch.save(tensors, folder / "pytorch_model.bin")
    weights = read(folder, ReadOptions()).weights
    assert all(torch.equal(weights[name], tensor) for name, tensor in wanted.items())

    class Trap:
        def __reduce__(self):
            return (open, (str(folder / "executed"), "w"))

    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap()))
    assert "none of it was executed" in complaint(folder)
    assert not (folder / "executed").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", b"{"),
        ("config.json", b"[]"),
        ("config.json", b"\xff"),
        ("generation_config.json", b"[" * 100_000),
        ("tokenizer_config.json", b"7"),
        ("tokenizer_config.json", b'{"sp_model_kwargs": {"nbest_size": "x"}}'),
        ("vocab.json", b'{"a": "b"}'),
        ("vocab.json", b'{"</s>": 0, "<unk>": 1, "<pad>": 1000000}'),
        ("vocab.json", b'{"</s>": 0, "<unk>": 0, "<pad>": 2}'),
        ("vocab.json", b"{}"),
        ("model.safetensors", b"not one"),
        ("model.safetensors", b""),
        ("source.spm", b"not one"),
        ("target.spm", b""),
    ],
)
def test_damaged_files_are_one_paragraph_and_leave_nothing(folder, tmp_path, name, content):
    (folder / name).write_bytes(content)
    with pytest.raises(HeedfulError) as caught:
        import_model("marian", folder, tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_a_format_that_is_not_known_lists_those_that_are(tmp_path):
    with pytest.raises(ExchangeError, match=r"--from must be one of .*marian"):
        import_model("llama", tmp_path, tmp_path / "run")
    with pytest.raises(ExchangeError, match=r"--format must be one of .*marian"):
        export_model(tmp_path, "llama", tmp_path / "out")


def test_an_option_that_the_format_does_not_use_is_refused(folder, tmp_path):
    for option in ("tokenizer", "task", "source_prefix"):
        options = ReadOptions(**{option: folder / "source.spm" if option == "tokenizer" else "x"})
        name = option.replace("_", "-")
        with pytest.raises(ExchangeError, match=rf"--{name} is for .* is marian; leave --{name}"):
            import_model("huggingface", folder, tmp_path / "run", options=options)
    for kind in ("huggingface", "marian", "mbart", "t5", "onnx"):
        with pytest.raises(ExchangeError, match=r"--quantization is for .*; leave --quantization"):
            export_model(folder, kind, tmp_path / "out", options=WriteOptions("int8"))
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_a_folder_that_is_none_is_told(tmp_path):
    assert "is not; check the path" in complaint(tmp_path / "nothing")


def test_sentences_to_compare_on_come_from_a_file(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("a\n\nb\n", encoding="utf-8")
    assert read_sentences(path) == ["a", "b"]
    assert read_sentences(None) == []


def test_a_missing_library_names_its_extra():
    with pytest.raises(MissingExtra, match=r"pip install 'heedful\[exchange\]'"):
        import_extra("no_such_library", "Comparing")
