"""Imported Joey NMT models compute the same as its forward pass written in NumPy."""

import numpy as np
import pytest
import torch

from heedful.errors import ExchangeError, ParityFailed
from heedful.exchange.convert import import_model
from heedful.exchange.formats import ReadOptions
from heedful.exchange.joey import read
from heedful.exchange.parity import sample_sentences
from heedful.runs.run import Run
from tests.oracles.numpy_transformer import ACTIVATIONS
from tests.oracles.originals import compare_import
from tests.support.old_joey import SOURCE, SPECIAL, TARGET, Joey, settings, write

SENTENCES = ["w1 w2 w3", "w4 nothing"]
JOINED = ([*SPECIAL, *SOURCE[4:], *TARGET[4:]],) * 2
VARIANTS = {
    "its defaults": ({}, {}),
    "pre-norm": ({"encoder": {"layer_norm": "pre"}, "decoder": {"layer_norm": "pre"}}, {}),
    "post-norm": ({"encoder": {"layer_norm": "post"}, "decoder": {"layer_norm": "post"}}, {}),
    "mixed": ({"decoder": {"layer_norm": "pre", "num_heads": 2, "ff_size": 20}}, {}),
    "not scaled": ({"scale": (False, False)}, {}),
    "scaled source": ({"scale": (True, False)}, {}),
    "scaled target": ({"scale": (False, True), "tied": (False, True)}, {}),
    "one table": ({"tied": (True, True), "scale": (True, False)}, {"words": JOINED}),
    "embeddings tied": ({"tied": (True, False)}, {"words": JOINED}),
    "swish": ({"encoder": {"activation": "swish"}, "decoder": {"activation": "swish"}}, {}),
}


def refusal(read, *arguments):
    with pytest.raises(ExchangeError) as caught:
        read(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", VARIANTS)
def test_log_probabilities_are_those_of_joey(name, tmp_path):
    changes, how = VARIANTS[name]
    given = settings(**changes, max_output_length=5)
    tensors = write(tmp_path / "old", given, **how)
    report, notes = import_model("joey", tmp_path / "old", tmp_path / "run", sentences=SENTENCES)
    parity = compare_import("joey", tmp_path / "old", tmp_path / "run", SENTENCES)
    assert parity.difference < 1e-4
    assert (report.parity, report.sentences, report.round_trips) == (None, 2, 2)
    assert notes == ()
    run = Run.open(tmp_path / "run")
    here, there = (one.id_mapping for one in run.tokenizer.models)
    source, target_in = [5, 9, 4, 0, 3], [2, 4, 8, 0]
    model = run.load_model("default", torch.device("cpu"), "fp32")
    with torch.no_grad():
        ids = torch.tensor([here.to_ours(source)]), torch.tensor([there.to_ours(target_in)])
        found = model.log_probabilities(model.states(*ids)[0]).numpy()
    wanted = Joey(tensors, given).log_probabilities(source, target_in)
    np.testing.assert_allclose(found[:, there.to_ours(range(there.rows))], wanted, atol=2e-5)


def test_a_high_penalty_and_a_least_length_give_its_translations(tmp_path):
    given = settings(beam_size=3, beam_alpha=2.0, min_output_length=4, max_output_length=9)
    write(tmp_path / "old", given)
    import_model("joey", tmp_path / "old", tmp_path / "run")
    sentences = sample_sentences(Run.open(tmp_path / "run").tokenizer)
    parity = compare_import("joey", tmp_path / "old", tmp_path / "run", sentences)
    assert parity.same_outputs == parity.sentences


@pytest.mark.parametrize("is_other", [False, True])
def test_where_rounding_is_magnified_double_precision_decides(is_other, tmp_path, monkeypatch):
    write(tmp_path / "old", settings(max_output_length=4), offset=1e6)
    import_model("joey", tmp_path / "old", tmp_path / "run", sentences=SENTENCES)
    if is_other:
        monkeypatch.setitem(ACTIVATIONS, "relu", lambda x: np.maximum(x, 1e-3))
        with pytest.raises(ParityFailed, match="in double precision"):
            compare_import("joey", tmp_path / "old", tmp_path / "run", SENTENCES)
        return
    parity = compare_import("joey", tmp_path / "old", tmp_path / "run", SENTENCES)
    assert parity.difference > parity.bound
    assert parity.precise < 1e-9


def test_search_and_languages_are_settings_of_the_run(tmp_path):
    given = settings(generate_unk=False)
    given["data"]["src"]["lang"] = False  # what YAML makes of the code of Norwegian
    given["data"]["trg"]["lowercase"] = True
    write(tmp_path, given)
    model = read(tmp_path, ReadOptions())
    search = model.config.search
    assert (search.beam, search.length_penalty, search.max_length) == (3, "gnmt:0.7", "9")
    assert (search.forbidden_ids, search.min_length) == ("1", 1)
    assert (search.stop, search.length_limit_policy) == ("as-joey", "keep")
    assert model.config.data.source_language == "no"
    assert read(tmp_path, ReadOptions("nb", "fr_CA")).tokenizer.target_language == "fr_CA"
    assert "lowercase" in model.notes[0]
    for told in ({"beam_size": 10**5}, {"max_output_length": 10**5}):
        write(tmp_path, settings(**told))
        assert f"{next(iter(told))}` of a checkpoint" in refusal(read, tmp_path, ReadOptions())
    write(tmp_path, settings(max_output_length=-1, min_output_length=3, beam_alpha=-1))
    model = read(tmp_path, ReadOptions())
    assert (model.config.search.length_penalty, model.config.search.min_length) == ("none", 3)
    assert "1.5 times" in model.notes[0]


def test_codes_that_were_copied_to_the_folder_cut_the_text(tmp_path):
    given = settings()
    for side in ("src", "trg"):
        part = {"level": "bpe", "tokenizer_type": "subword-nmt"}
        given["data"][side] |= part | {"tokenizer_cfg": {"codes": "/elsewhere/codes.txt"}}
    write(tmp_path, given)
    assert "spaces" in read(tmp_path, ReadOptions()).notes[0]
    (tmp_path / "codes.txt").write_text("#version: 0.2\nw 1</w>\n")
    model = read(tmp_path, ReadOptions())
    assert len(model.notes) == 1
    assert "splits a subword further" in model.notes[0]
    assert model.tokenizer.encode_source(["w1 w2"])[0][0] == 5
    message = refusal(read, tmp_path, ReadOptions(tokenizer=tmp_path / "mistyped"))
    assert "--tokenizer must name a file or folder, but" in message


def test_all_that_cannot_be_expressed_is_refused_at_once(tmp_path):
    given = settings(
        encoder={"type": "recurrent", "alpha": 0.8},
        decoder={"hidden_size": 32, "activation": "tanh", "layer_norm": "none"},
    )
    given["data"]["src"]["level"] = "char"
    write(tmp_path, settings())
    (tmp_path / "config.yaml").write_text(str(given))
    message = refusal(read, tmp_path, ReadOptions())
    for word in ("recurrent", "alpha", "widths", "tanh", "'none'", "char"):
        assert word in message


def test_what_is_missing_or_damaged_is_said(tmp_path):
    assert "config.yaml" in refusal(read, tmp_path, ReadOptions())
    given = settings()
    for name in ("best.ckpt", "src_vocab.txt"):
        write(tmp_path, given)
        (tmp_path / name).unlink()
        assert name in refusal(read, tmp_path, ReadOptions())
    write(tmp_path, given, words=(SOURCE, TARGET[1:]))
    assert "<unk>" in refusal(read, tmp_path, ReadOptions())
    write(tmp_path, given)
    for text in ("a: [1, 2", "a: !!python/object/apply:os.system [true]", "3", "a: " + "[" * 9999):
        (tmp_path / "config.yaml").write_text(text)
        refusal(read, tmp_path, ReadOptions())
    write(tmp_path, given)
    torch.save([1], tmp_path / "best.ckpt")
    assert "model_state" in refusal(read, tmp_path, ReadOptions())
