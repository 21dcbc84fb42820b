"""Today's parts of attention by the commands of every model: each trains, resumes, translates."""

import json
from itertools import chain

import pytest

from heedful.analysis.info import describe_run
from heedful.bench.random_run import make_random_run
from heedful.config.load import load_config
from heedful.errors import ExchangeError
from heedful.exchange.convert import export_model
from heedful.translation.translator import Translator
from tests.support.commands import not_exported, resumes_alike, train_arguments, train_run
from tests.support.families import texts_are_here

COMMON = (
    "train.precision=fp32",
    "train.steps=6",
    "train.batch_tokens=256",
    "train.checkpoint_steps=3",
    "train.validate_steps=none",
)
# By name: the settings, and what a refused export says of them; empty if they are exported.
PARTS = {
    "rotary": (("model.positions=rotary",), ""),
    "shaw": (("model.positions=shaw",), "`model.positions` is shaw"),
    "one head of keys": (("model.attention.kv_heads=1",), "`model.attention.kv_heads` is 1"),
    "shared layers": (
        ("model.encoder_sharing=1,1", "model.decoder_layers=3", "model.decoder_sharing=1,2,2"),
        "`model.encoder_sharing` is 1,1",
    ),
    "attention dropout": (("model.attention.dropout=0.2",), ""),
    "qk-norm": (("model.attention.qk_norm=rms",), "`model.attention.qk_norm` is rms"),
    "layer norms of queries and keys": (
        ("model.attention.qk_norm=layer",),
        "`model.attention.qk_norm` is layer",
    ),
    "queries and keys of length one": (
        ("model.attention.qk_norm=l2",),
        "`model.attention.qk_norm` is l2",
    ),
    "gated networks": (
        ("model.gated=true", "model.activation=silu", "model.d_ff=88"),
        "`model.gated` is true",
    ),
    "norms without a mean": (("model.norm_kind=rms",), "`model.norm_kind` is rms"),
    "buckets": (
        ("model.positions=relative-buckets",),
        "`model.positions` is relative-buckets",
    ),
}
# What T5 has, too, so tests/unit/exchange/t5 export it.
OF_T5 = ("gated networks", "norms without a mean", "buckets")
IN_ONNX = ("gated networks", "norms without a mean", "one head of keys", "shared layers", "rotary")
# What a processor's compiled layers compute.
COMPILED = (*OF_T5, "shared layers", "attention dropout", "rotary")
HERE = [name for name, (settings, _) in PARTS.items() if texts_are_here(settings)]
# Every part is in one of these models: of the first two the layers are compiled.
MODELS = {
    "compiled": ("rotary", "shared layers", "attention dropout", "gated networks"),
    "of T5": ("buckets", "norms without a mean"),
    "shaw": ("shaw", "layer norms of queries and keys"),
    "one head of keys": ("one head of keys", "qk-norm"),
    "queries and keys of length one": ("queries and keys of length one",),
}
# One of the models trains in bf16, with several micro-batches per step; batches are small, because
# bf16 is slow on most processors.
BF16 = {
    "one head of keys": (
        "train.precision=bf16",
        "train.batch_tokens=96",
        "train.micro_batch_tokens=48",
    )
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    """Name, and the settings of the parts and of the training."""
    parts = [name for name in MODELS[request.param] if name in HERE]
    settings = chain.from_iterable(PARTS[name][0] for name in parts)
    return request.param, (*COMMON, *settings, *BF16.get(request.param, ()))


@pytest.fixture(scope="module")
def run(heedful_cli, text, model, tmp_path_factory):
    return train_run(heedful_cli, text, tmp_path_factory.mktemp("parts") / "run", *model[1])


def test_every_part_is_in_a_model():
    assert sorted(chain.from_iterable(MODELS.values())) == sorted(PARTS)
    assert {*MODELS["compiled"], *MODELS["of T5"]} == {*COMPILED}


def test_a_resumed_run_has_the_same_bytes(heedful_cli, text, model, run, tmp_path):
    resumes_alike(heedful_cli, text, run, tmp_path / "again", model[1], 3, 6)


def test_it_translates_and_scores_in_every_precision(heedful_cli, run):
    scores = []
    for precision in ("fp32", "bf16", "int8"):
        translator = Translator.load(run, device="cpu", precision=precision)
        assert translator.translate("a dog", max_length=5).score < 0
        scores.append(sum(translator.score(["the red dog"], ["le chien rouge"])[0]))
    assert scores[1:] == [pytest.approx(scores[0], rel=0.05)] * 2
    done = heedful_cli("translate", run, "--max-length", "5", stdin="a dog\n")
    assert done.returncode == 0 and done.stdout.count("\n") == 1, done.stderr


def test_info_and_a_dry_run_count_the_same_parameters(heedful_cli, text, model, run, tmp_path):
    told = json.loads(heedful_cli("info", run, "--json").stdout)
    is_compiled = model[0] in ("compiled", "of T5")
    assert told["layers"].startswith("compiled" if is_compiled else "plain on a CPU: ")
    done = heedful_cli(*train_arguments(text, tmp_path / "dry", *model[1]), "--dry-run")
    assert done.returncode == 0, done.stderr
    assert f"{told['parameters']:,}" in done.stdout + done.stderr


@pytest.mark.parametrize("name", HERE)
def test_a_format_refuses_a_part_or_computes_the_same(name, tmp_path):
    settings, named = PARTS[name]
    (tmp_path / "run").mkdir()
    run = make_random_run(tmp_path / "run", load_config("tiny", settings), 60).folder.path
    layers = describe_run(run)["layers"]
    assert layers.startswith("compiled" if name in COMPILED else "plain on a CPU: ")
    if name in IN_ONNX:
        parity, _ = export_model(run, "onnx", tmp_path / "onnx", sentences=["w1 w2 w3"])
        assert parity.difference < 1e-4
    if named and name in (*OF_T5, *IN_ONNX):
        with pytest.raises(ExchangeError) as caught:
            export_model(run, "ctranslate2", tmp_path / "out")
        assert named in str(caught.value)
    elif named:
        not_exported(run, tmp_path, named)
    else:
        parity, _ = export_model(run, "ctranslate2", tmp_path / "out", sentences=["w1 w2 w3"])
        assert parity.difference < 1e-4
