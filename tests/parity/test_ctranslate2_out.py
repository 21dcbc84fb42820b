"""An exported model is the same in CTranslate2, and the same again after re-import."""

import json
import shutil

import numpy as np
import pytest
import torch
from ctranslate2 import specs

from heedful.bench.random_run import make_random_run, random_lines
from heedful.config.schema import RunConfig
from heedful.errors import ExchangeError, ParityFailed, RunFolderError, SettingError
from heedful.exchange.convert import export_model, import_model
from heedful.exchange.ctranslate2 import write as ctranslate2
from heedful.exchange.ctranslate2.binary import read_model_file
from heedful.exchange.ctranslate2.read import read, read_config
from heedful.exchange.ctranslate2.settings import Variables
from heedful.exchange.ctranslate2.translator import ExportedTranslator
from heedful.exchange.ctranslate2.write import BOUNDS
from heedful.exchange.formats import ReadOptions, WriteOptions, Writer
from heedful.runs.checkpoint import load_checkpoint, save_checkpoint
from heedful.runs.run import Run
from heedful.search.length import LengthPenalty
from heedful.search.settings import SearchOptions
from heedful.tokenization.special_symbols import END, PAD, START
from heedful.tokenization.tokenizer import Tokenizer
from heedful.translation.translator import Translator

SMALL = {
    "model.d_model": 16,
    "model.d_ff": 24,
    "model.heads": 2,
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
    "search.max_length": "input+4",
}
SHAPES = {
    "paper": {},
    "narrow keys": {"model.d_k": 4, "model.d_v": 8},
    "narrow values": {"model.d_k": 11, "model.d_v": 5, "model.heads": 3},
    "wider than the model": {"model.d_k": 12, "model.d_v": 12},
    "uneven": {
        "model.encoder_norm": "pre",
        "model.encoder_heads": 4,
        "model.encoder_d_ff": 10,
        "model.encoder_layers": 1,
        "model.activation": "silu",
        "model.positions": "grouped",
        "model.decoder_start": "pad",
    },
    "t2t": {
        "model.positions": "halves",
        "model.decoder_start": "zero",
        "data.vocabulary_multiple": 32,
        "model.activation": "gelu_tanh",
    },
    "untied": {
        "model.norm": "pre",
        "model.activation": "gelu",
        "model.tie_embeddings": "none",
        "model.output_bias": True,
        "model.position_offset": 1,
    },
    "learned": {
        "model.positions": "learned",
        "data.max_length": 20,
        "model.tie_embeddings": "output",
        "model.projection_bias": False,
        "model.scale_embeddings": False,
        "model.decoder_start": "end",
        "model.source_end": False,
    },
    "rotary": {
        "model.positions": "rotary",
        "model.rotary.base": 500.0,
        "model.d_k": 12,
        "model.d_v": 12,
    },
    "rotary halves": {"model.positions": "rotary", "model.d_k": 6, "model.d_v": 4},
}
QUICK = ("paper", "uneven", "rotary", "rotary halves")


def marks(shape):
    is_rotary = SHAPES[shape].get("model.positions") == "rotary"
    needed = [pytest.mark.family("rotary")] * is_rotary
    return needed + [pytest.mark.soak] * (shape not in QUICK)


LINES = random_lines(61, 7, 3)
OPTIONS = WriteOptions("", 48)


def random_run(folder, settings):
    """A run with random weights, also those that are initialized to one or zero."""
    folder.mkdir()
    run = make_random_run(folder, RunConfig().with_settings(SMALL | settings), 61)
    drawn = torch.Generator().manual_seed(3)
    weights = load_checkpoint(run.folder.checkpoint(1)).model
    changed = {  # sorted, since a checkpoint's order is another one in each process
        name: weight + 0.3 * torch.randn(weight.shape, generator=drawn)
        for name, weight in sorted(weights.items())
    }
    save_checkpoint(run.folder.checkpoint(2), changed, None, {"step": 2})
    return run


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A folder with a run of default settings, and its export; neither changes."""
    folder = tmp_path_factory.mktemp("exported")
    random_run(folder / "run", {})
    export_model(folder / "run", "ctranslate2", folder / "ct2", options=OPTIONS, sentences=LINES)
    return folder


@pytest.mark.parametrize("shape", [pytest.param(shape, marks=marks(shape)) for shape in SHAPES])
def test_a_model_goes_out_and_comes_back(tmp_path, shape):
    random_run(tmp_path / "run", SHAPES[shape])
    there, _ = export_model(
        tmp_path / "run", "ctranslate2", tmp_path / "ct2", options=OPTIONS, sentences=LINES
    )
    assert there.difference < 2e-5
    back, notes = import_model("ctranslate2", tmp_path / "ct2", tmp_path / "back", sentences=LINES)
    assert back.parity.difference < 2e-5
    assert notes == ()
    scores = [
        Translator.load(tmp_path / name, device="cpu", precision="fp32", threads=1).score(
            LINES, LINES[::-1]
        )
        for name in ("run", "back")
    ]
    for mine, other in zip(*scores, strict=True):
        np.testing.assert_allclose(mine, other, atol=2e-5)


def test_what_no_translation_may_hold_is_in_none_however_probable(tmp_path):
    run = random_run(tmp_path / "run", SHAPES["untied"])
    weights = dict(load_checkpoint(run.folder.checkpoint(2)).model)
    never = torch.tensor([PAD, START])
    weights["output.bias"] = weights["output.bias"].index_fill(0, never, 9.0)
    save_checkpoint(run.folder.checkpoint(2), weights, None, {"step": 2})
    export_model(
        tmp_path / "run", "ctranslate2", tmp_path / "ct2", options=OPTIONS, sentences=LINES
    )
    back, _ = import_model("ctranslate2", tmp_path / "ct2", tmp_path / "back", sentences=LINES)
    assert back.parity.difference < 2e-5
    there = ExportedTranslator.load(tmp_path / "ct2", threads=1).translate(LINES)
    here = Translator.load(tmp_path / "run", device="cpu", precision="fp32", threads=1)
    tokens = [" ".join(one.tokens) for one in there]
    assert not any(symbol in line for line in tokens for symbol in ("<pad>", "<s>"))
    divisor = LengthPenalty.parse(run.config.search.length_penalty).divisor
    scores = [  # all are cut: the end symbol does not count
        sum(each[:-1]) / divisor(len(each) - 1)
        for each in here.score(LINES, [one.text for one in there])
    ]
    np.testing.assert_allclose([one.score for one in there], scores, atol=1e-4)


def test_what_is_too_long_for_the_table_is_not_compared(tmp_path):
    random_run(tmp_path / "run", {})
    options = WriteOptions("float32", 9)
    there, _ = export_model(tmp_path / "run", "ctranslate2", tmp_path / "ct2", options=options)
    back, _ = import_model("ctranslate2", tmp_path / "ct2", tmp_path / "back")
    assert there.sentences == back.sentences < 12
    for parity in (there, back.parity):
        assert parity.difference < 2e-5
    with pytest.raises(ExchangeError, match=r"at most 8 subwords .* give shorter sentences"):
        export_model(
            tmp_path / "run",
            "ctranslate2",
            tmp_path / "other",
            options=options,
            sentences=random_lines(61, 30, 3),
        )
    assert not (tmp_path / "other").exists()


def test_a_length_limit_beyond_the_table_is_lowered(tmp_path):
    random_run(tmp_path / "run", {"search.max_length": "60"})
    _, notes = export_model(
        tmp_path / "run", "ctranslate2", tmp_path / "ct2", options=OPTIONS, sentences=LINES
    )
    assert "CTranslate2 searches with search.max_length = 47 instead of 60" in notes[1]
    there = ExportedTranslator.load(tmp_path / "ct2", threads=1)
    here = Translator.load(tmp_path / "run", device="cpu", precision="fp32", threads=1)
    options = SearchOptions(beam=1, max_length="47")
    found = [one.tokens for one in there.translate(LINES, SearchOptions(beam=1))]
    assert found == [one.tokens for one in here.translate(LINES, options)]
    with pytest.raises(SettingError, match="max-length must be at most 47 with this folder"):
        there.translate(LINES, SearchOptions(max_length="48"))
    import_model("ctranslate2", tmp_path / "ct2", tmp_path / "back", sentences=LINES)
    assert Run.open(tmp_path / "back").config.search.max_length == "47"


@pytest.mark.parametrize("least", [0, 3, 9])
def test_the_least_length_holds_on_both_sides(tmp_path, least):
    run = random_run(tmp_path / "run", SHAPES["untied"] | {"search.min_length": least})
    weights = dict(load_checkpoint(run.folder.checkpoint(2)).model)
    weights["output.bias"] = weights["output.bias"].index_fill(0, torch.tensor([END]), 30.0)
    save_checkpoint(run.folder.checkpoint(2), weights, None, {"step": 2})
    export_model(
        tmp_path / "run", "ctranslate2", tmp_path / "ct2", options=OPTIONS, sentences=LINES
    )
    there = ExportedTranslator.load(tmp_path / "ct2", threads=1)
    here = Translator.load(tmp_path / "run", device="cpu", precision="fp32", threads=1)
    assert {len(one.tokens) for one in there.translate(LINES)} == {least}
    for lowest in (None, 2):
        options = SearchOptions(beam=1, min_length=lowest)
        found = [one.tokens for one in there.translate(LINES, options)]
        assert found == [one.tokens for one in here.translate(LINES, options)]


def test_what_is_equal_comes_back_bit_by_bit(exported):
    run = Run.open(exported / "run")
    model = read(exported / "ct2", ReadOptions())
    weights = load_checkpoint(run.folder.checkpoint(2)).model
    assert model.weights.keys() == weights.keys()
    for name, weight in weights.items():
        torch.testing.assert_close(model.weights[name], weight, atol=0, rtol=0)
    assert model.config.model == run.config.model
    assert model.tokenizer.fingerprint == run.tokenizer.fingerprint


@pytest.mark.parametrize("quantization", ["int8", "int16", "float16", "bfloat16"])
def test_rounded_weights_stay_near_and_are_read_again(exported, tmp_path, quantization):
    parity, _ = export_model(
        exported / "run",
        "ctranslate2",
        tmp_path / "ct2",
        options=WriteOptions(quantization, 48),
        sentences=LINES,
    )
    assert 0.0 < parity.difference <= parity.bound == BOUNDS[quantization]
    sizes = [(folder / "ct2/model.bin").stat().st_size for folder in (tmp_path, exported)]
    assert sizes[0] < 0.7 * sizes[1]
    model = read(tmp_path / "ct2", ReadOptions())
    run = Run.open(exported / "run")
    for name, weight in load_checkpoint(run.folder.checkpoint(2)).model.items():
        assert (model.weights[name] - weight).abs().max() < 0.02, name


def test_the_folder_says_how_it_is_to_be_used(exported):
    config = json.loads((exported / "ct2/config.json").read_text())
    assert (config["add_source_eos"], config["decoder_start_token"]) == (True, "<s>")
    record = json.loads((exported / "ct2/heedful.json").read_text())
    assert (record["positions"], record["quantization"]) == (48, "float32")
    assert record["search"]["length_penalty"] == "gnmt:0.6"
    assert record["tokenizer"] == Tokenizer.load(exported / "ct2").fingerprint


def test_an_exported_model_is_refused_with_other_subwords(exported, tmp_path):
    Tokenizer.load(exported / "ct2").save(tmp_path)
    record = json.loads((exported / "ct2/heedful.json").read_text())
    (tmp_path / "heedful.json").write_text(json.dumps({**record, "tokenizer": "0" * 64}))
    with pytest.raises(RunFolderError, match="but the tokenizer differs"):
        ExportedTranslator.load(tmp_path)


def test_an_exported_model_is_refused_with_other_weights(exported, tmp_path):
    folder = tmp_path / "ct2"
    shutil.copytree(exported / "ct2", folder)
    weights = bytearray((folder / "model.bin").read_bytes())
    weights[len(weights) // 2] ^= 1  # one weight of another run
    (folder / "model.bin").write_bytes(weights)
    with pytest.raises(RunFolderError, match=r"but model\.bin differs"):
        ExportedTranslator.load(folder)
    record = json.loads((folder / "heedful.json").read_text())
    (folder / "heedful.json").write_text(json.dumps({**record, "weights": ""}))
    ExportedTranslator.load(folder)  # an older version wrote no digest


def test_all_reasons_are_given_at_once_and_nothing_stays(tmp_path):
    assert isinstance(ctranslate2, Writer)
    random_run(tmp_path / "run", {"model.decoder_norm": "pre-no-final"})
    with pytest.raises(ExchangeError, match=r"int4.*at least 2.*decoder normalizes before"):
        export_model(
            tmp_path / "run", "ctranslate2", tmp_path / "ct2", options=WriteOptions("int4", 1)
        )
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["run"]


def test_a_model_that_computes_something_else_leaves_nothing(tmp_path, monkeypatch):
    random_run(tmp_path / "run", {})
    monkeypatch.setitem(BOUNDS, "int8", 1e-9)
    options = WriteOptions("int8", 48)
    with pytest.raises(ParityFailed, match="Nothing was written"):
        export_model(
            tmp_path / "run", "ctranslate2", tmp_path / "ct2", options=options, sentences=LINES
        )
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["run"]


def test_a_model_that_is_not_ours_is_refused_with_all_reasons(exported, tmp_path):
    folder = tmp_path / "other"
    shutil.copytree(exported / "ct2", folder)
    spec = specs.TransformerSpec.from_config(1, 2, ffn_glu=True, rms_norm=False)
    zeros = {"weight": (16, 16), "gamma": 16, "beta": 16}

    def fill(part, name, value):
        kind = name.rpartition("/")[2]
        if value is None:
            size = (61, 16) if "embeddings" in name or "projection" in name else zeros[kind]
            size = (48, 16) if "self_attention/linear_0" in name else size
            setattr(part, kind, np.zeros(size, np.float32))

    spec._visit(fill)
    words = [f"t{number}" for number in range(58)] + ["<unk>", "<s>", "</s>"]
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.config.add_source_bos = True
    spec.encoder.activation, spec.decoder.activation = np.int8(5), np.int8(5)
    spec.validate()
    spec.save(str(folder))
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ExchangeError, match=r"start symbol.*activation.*number 5"):
        read(folder, ReadOptions())
    spec.encoder.activation = spec.decoder.activation = type(spec.encoder.activation)(np.int8(0))
    spec.config.add_source_bos = False
    spec.save(str(folder))
    with pytest.raises(ExchangeError, match=r"linear_0_noact"):
        read(folder, ReadOptions())


@pytest.fixture(scope="module")
def rotary(tmp_path_factory):
    """The export of a model with rotary positions; it does not change."""
    folder = tmp_path_factory.mktemp("rotary")
    random_run(folder / "run", SHAPES["rotary"])
    export_model(folder / "run", "ctranslate2", folder / "ct2", options=OPTIONS, sentences=LINES)
    return folder / "ct2"


@pytest.mark.family("rotary")
@pytest.mark.parametrize(
    ("layers", "name", "value", "said"),
    [
        ("1", "self_attention/rotary_base", 100.0, "its layers rotate in several ways"),
        ("01", "self_attention/rotary_interleave", 1, "it rotates pairs of neighbors"),
        ("01", "self_attention/rotary_dim", 6, "it rotates 6 numbers of each head, not all"),
    ],
)
def test_another_rotation_is_refused(rotary, layers, name, value, said):
    variables = Variables(read_model_file(rotary / "model.bin"), read_config(rotary))
    variables.weights |= {
        f"{side}/layer_{number}/{name}": np.array(value)
        for side in ("encoder", "decoder")
        for number in layers
    }
    variables.settings()
    with pytest.raises(ExchangeError, match=said):
        variables.reasons.refuse("no", "no")


@pytest.mark.family("rotary")
def test_a_table_of_positions_besides_a_rotation_is_refused(rotary):
    variables = Variables(read_model_file(rotary / "model.bin"), read_config(rotary))
    table = variables.weights["encoder/position_encodings/encodings"]
    assert table.shape == (48, 16) and not table.any()
    variables.weights["encoder/position_encodings/encodings"] = table + 1
    variables.settings()
    with pytest.raises(ExchangeError, match="both rotary positions and a table of positions"):
        variables.reasons.refuse("no", "no")
