"""Imported recurrent models of Joey NMT compute the same as torch's modules in its wiring."""

import numpy as np
import pytest
import torch

from heedful.errors import ExchangeError
from heedful.exchange.convert import import_model
from heedful.exchange.formats import ReadOptions
from heedful.exchange.joey import read
from heedful.families.recurrent.joey import is_kind
from heedful.runs.run import Run
from tests.oracles.originals import compare_import
from tests.support.old_joey import SOURCE, SPECIAL, TARGET
from tests.support.old_joey_recurrent import settings, write

pytestmark = pytest.mark.family("recurrent")
JOINED = ([*SPECIAL, *SOURCE[4:], *TARGET[4:]],) * 2
LSTM, THREE = {"rnn_type": "lstm"}, {"num_layers": 3}
SENTENCES = ["w1 w2 w3", "w4 nothing", "w14 w9 w0 w9 w2"]
WIDE = {"hidden_size": 12}
VARIANTS = {
    "its defaults": {},
    "lstm": {"encoder": LSTM, "decoder": LSTM},
    "luong": {"decoder": {"attention": "luong"}},
    "lstm, luong, no feeding": {
        "encoder": LSTM,
        "decoder": {**LSTM, "attention": "luong", "input_feeding": False},
    },
    "no feeding": {"decoder": {"input_feeding": False}},
    "last": {"decoder": {"init_hidden": "last"}},
    "last of both directions": {
        "encoder": {**LSTM, "hidden_size": 5},
        "decoder": {**LSTM, "init_hidden": "last"},
    },
    "zero": {"decoder": {"init_hidden": "zero"}},
    "lstm, last, three layers": {
        "encoder": {**LSTM, "num_layers": 2},
        "decoder": {**LSTM, **THREE, "init_hidden": "last"},
    },
    "lstm, zero, luong, two layers": {
        "encoder": {**LSTM, **THREE},
        "decoder": {**LSTM, "num_layers": 2, "init_hidden": "zero", "attention": "luong"},
    },
    "three layers": {"encoder": THREE, "decoder": THREE},
    "three layers, no feeding": {
        "encoder": THREE,
        "decoder": {**THREE, "input_feeding": False},
    },
    "two widths": {"encoder": {"hidden_size": 7}},
    "scaled": {"scale": (True, True)},
    "scaled source": {"scale": (True, False)},
    "tied output": {"decoder": WIDE, "tied": (False, True)},
    "one table": {"decoder": WIDE, "tied": (True, True)},
    "embeddings tied": {"tied": (True, False), "scale": (True, False)},
    "one table, scaled": {"decoder": WIDE, "tied": (True, True), "scale": (True, True)},
    "tied output, scaled": {"decoder": WIDE, "tied": (False, True), "scale": (False, True)},
}


def refusal(given, folder):
    write(folder, settings())
    (folder / "config.yaml").write_text(str(given))
    with pytest.raises(ExchangeError) as caught:
        read(folder, ReadOptions())
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", VARIANTS)
def test_log_probabilities_and_translations_are_those_of_joey(name, tmp_path):
    given = settings(**VARIANTS[name])
    words = {"words": JOINED} if given["model"]["tied_embeddings"] else {}
    joey = write(tmp_path / "old", given, **words)
    _, notes = import_model("joey", tmp_path / "old", tmp_path / "run", sentences=SENTENCES)
    parity = compare_import("joey", tmp_path / "old", tmp_path / "run", SENTENCES)
    assert parity.difference < 1e-4
    assert parity.same_outputs == parity.sentences
    is_untied = given["model"]["tied_softmax"] and "scaled" in name
    assert ["ties them to the output" in note for note in notes] == [True] * is_untied
    run = Run.open(tmp_path / "run")
    assert (run.config.model.tie_embeddings == "none") == (
        is_untied or not given["model"]["tied_softmax"]
    )
    models = run.tokenizer.models
    here, there = models[0].id_mapping, models[-1].id_mapping
    source, target_in = [5, 9, 4, 0, 3], [2, 4, 8, 0]
    model = run.load_model("default", torch.device("cpu"), "fp32")
    with torch.no_grad():
        ids = torch.tensor([here.to_ours(source)]), torch.tensor([there.to_ours(target_in)])
        found = model.log_probabilities(model.states(*ids)[0]).numpy()
    wanted = joey.log_probabilities(source, target_in)
    np.testing.assert_allclose(found[:, there.to_ours(range(there.rows))], wanted, atol=2e-5)


def test_settings_are_those_of_the_training(tmp_path):
    encoder = {"dropout": 0.3, "embeddings": {"embedding_dim": 12, "dropout": 0.2}}
    write(tmp_path, settings(encoder, {"hidden_dropout": 0.4, "dropout": 0.3}, beam_size=4))
    model = read(tmp_path, ReadOptions())
    recurrent = model.config.model.recurrent
    assert (model.config.model.dropout, model.config.model.d_model) == (0.3, 12)
    assert (recurrent.embedding_dropout, recurrent.readout_dropout) == (0.2, 0.4)
    assert (model.config.search.beam, model.config.search.stop) == (4, "as-joey")
    assert "dropouts" in model.notes[0]
    assert model.config.model.encoder == model.config.model.decoder == "recurrent"


def test_all_that_cannot_be_expressed_is_refused_at_once(tmp_path):
    given = settings(
        {"rnn_type": "sru", "bidirectional": False, "hidden_size": 9},
        {
            "attention": "dot",
            "activation": "relu",
            "init_hidden": "last",
            "embeddings": {"embedding_dim": 8},
        },
        tied=(False, True),
    )
    given["data"]["src"]["level"] = "char"
    message = refusal(given, tmp_path)
    for word in (
        "'sru'",
        "`rnn_type` differs",
        "`bidirectional` is false",
        "'dot'",
        "'relu'",
        "12 for the source, 8 for the target",
        "the decoder has 10 and the encoder 9",
        "`tied_softmax`",
        "char",
    ):
        assert word in message


def test_the_types_of_both_sides_decide():
    assert is_kind({"decoder": {"type": "recurrent"}})  # the encoder's default
    assert not is_kind({"encoder": {"type": "recurrent"}})
    assert not is_kind({"encoder": {"type": "transformer"}, "decoder": {"type": "recurrent"}})


def test_two_families_in_one_model_are_refused(tmp_path):
    message = refusal(settings({"type": "transformer", "num_heads": 2}), tmp_path)
    assert "the encoder is transformer and the decoder recurrent" in message


def test_weights_of_another_model_are_refused_by_name(tmp_path):
    assert "energy_layer" in refusal(settings(decoder={"attention": "luong"}), tmp_path)
    assert "encoder.rnn.weight_ih_l0" in refusal(settings(LSTM, LSTM), tmp_path)
    wide = settings({"hidden_size": 10**5})
    assert "hidden_size of the encoder is 100,000" in refusal(wide, tmp_path)
