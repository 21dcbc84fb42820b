"""Imported OpenNMT-py models compute the same as its forward pass written in NumPy."""

import numpy as np
import pytest
import torch

from heedful.errors import ExchangeError
from heedful.exchange.convert import import_model
from heedful.exchange.formats import ReadOptions
from heedful.exchange.opennmt import TENSOR_NAMES, read, read_vocabularies
from heedful.runs.run import Run
from tests.oracles.originals import compare_import
from tests.support.old_opennmt import SOURCE, TARGET, OpenNmt, options, write

SENTENCES = ["w1 w2 w3", "w4 nothing"]
SHARED = (sorted({*SOURCE, *TARGET}),) * 2
VARIANTS = {
    "version 3": ({}, {}),
    "version 2": ({"heads": 2}, {"version": 2}),
    "version 1": ({}, {"version": 1}),
    "without biases": ({"add_qkvbias": False, "add_ffnbias": False}, {}),
    "fairseq's positions": ({"position_encoding_type": "SinusoidalConcat"}, {}),
    "tied output": ({"share_decoder_embeddings": True, "pos_ffn_activation_fn": "gelu"}, {}),
    "one table": (
        {"share_embeddings": True, "share_decoder_embeddings": True},
        {"words": SHARED},
    ),
}


def refusal(read, *arguments):
    with pytest.raises(ExchangeError) as caught:
        read(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", VARIANTS)
def test_log_probabilities_are_those_of_opennmt(name, tmp_path):
    changes, how = VARIANTS[name]
    given = options(**changes)
    tensors = write(tmp_path / "model.pt", given, **how)
    _, notes = import_model(
        "opennmt",
        tmp_path / "model.pt",
        tmp_path / "run",
        options=ReadOptions("en", "fr"),
        sentences=SENTENCES,
    )
    parity = compare_import("opennmt", tmp_path / "model.pt", tmp_path / "run", SENTENCES)
    assert parity.difference < 1e-4
    assert parity.same_outputs == parity.sentences
    assert any("onmt_translate" in note for note in notes)
    run = Run.open(tmp_path / "run")
    here, there = (one.id_mapping for one in run.tokenizer.models)
    start = there.origins[2]
    source, target_in = [5, 9, 4, 0], [start, 4, 8, 0]
    model = run.load_model("default", torch.device("cpu"), "fp32")
    with torch.no_grad():
        ids = torch.tensor([here.to_ours(source)]), torch.tensor([there.to_ours(target_in)])
        found = model.log_probabilities(model.states(*ids)[0]).numpy()
    wanted = OpenNmt(tensors, given).log_probabilities(source, target_in)
    np.testing.assert_allclose(found[:, there.to_ours(range(there.rows))], wanted, atol=2e-5)
    assert not run.config.model.source_end
    assert run.config.data.source_language == "en"


def test_a_source_without_start_and_end_keeps_its_ids(tmp_path):
    write(tmp_path / "model.pt", options())
    model = read(tmp_path / "model.pt", ReadOptions())
    assert model.tokenizer.models[0].id_mapping.origins[:6] == (1, 0, None, None, 2, 3)
    assert model.tokenizer.models[1].id_mapping.origins[:6] == (1, 0, 2, 3, 4, 5)
    assert model.weights["embed_source.weight"][2].abs().sum() == 0
    search = model.config.search
    assert search.length_penalty == "power:1"
    assert (search.stop, search.length_limit_policy) == ("as-opennmt", "keep")


def test_all_that_cannot_be_expressed_is_refused_at_once(tmp_path):
    write(
        tmp_path / "model.pt",
        options(
            copy_attn=True,
            max_relative_positions=20,
            layer_norm="rms",
            pos_ffn_activation_fn="silu",
            decoder_type="transformer_lm",
            self_attn_type="average",
        ),
    )
    message = refusal(read, tmp_path / "model.pt", ReadOptions())
    for word in ("copy_attn", "max_relative", "rms", "silu", "transformer_lm", "average"):
        assert word in message


def test_other_files_and_forms_are_refused(tmp_path):
    torch.save({"model": {}}, tmp_path / "model.pt")
    assert "generator" in refusal(read, tmp_path / "model.pt", ReadOptions())
    for vocab in (3, {}, {"src": 1, "tgt": 2}, {"src": [["a"], ["b"]], "tgt": ["a"]}):
        assert "words" in refusal(read_vocabularies, vocab)


def test_a_table_of_another_form_is_refused(tmp_path):
    path = tmp_path / "model.pt"
    write(path, options())
    saved = torch.load(path, weights_only=False)
    saved["model"][TENSOR_NAMES.source_table] = torch.ones(17)
    torch.save(saved, path)
    assert "d_model is 0" in refusal(read, path, ReadOptions())
