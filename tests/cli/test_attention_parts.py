"""Today's parts of attention by the commands of every model: each trains, resumes, translates."""

import json

import pytest

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
    "train.validate_steps=3",
)
# By name: the settings, and what a refused export says of them; empty if they are exported.
PARTS = {
    "rotary": (("model.positions=rotary",), "`model.positions` is rotary"),
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
# What a processor's compiled layers compute.
COMPILED = (*OF_T5, "shared layers", "attention dropout", "rotary")
HERE = [name for name, (settings, _) in PARTS.items() if texts_are_here(settings)]


@pytest.fixture(scope="module", params=HERE)
def part(request, heedful_cli, text, tmp_path_factory):
    """Name and run of a part."""
    out = tmp_path_factory.mktemp(request.param) / "run"
    settings = (*COMMON, *PARTS[request.param][0])
    return request.param, train_run(heedful_cli, text, out, *settings)


def test_a_resumed_run_has_the_same_bytes(heedful_cli, text, part, tmp_path):
    name, run = part
    settings = (*COMMON, *PARTS[name][0])
    resumes_alike(heedful_cli, text, run, tmp_path / "again", settings, 3, 6)


def test_it_translates_and_scores_in_every_precision(heedful_cli, part):
    scores = []
    for precision in ("fp32", "bf16", "int8"):
        translator = Translator.load(part[1], device="cpu", precision=precision)
        assert translator.translate("a dog", max_length=5).score < 0
        scores.append(sum(translator.score(["the red dog"], ["le chien rouge"])[0]))
    assert scores[1:] == [pytest.approx(scores[0], rel=0.05)] * 2
    done = heedful_cli("translate", part[1], "--max-length", "5", stdin="a dog\n")
    assert done.returncode == 0 and done.stdout.count("\n") == 1, done.stderr


def test_info_and_a_dry_run_count_the_same_parameters_and_name_the_layers(
    heedful_cli, text, part, tmp_path
):
    name, run = part
    told = heedful_cli("info", run, "--json")
    count = json.loads(told.stdout)["parameters"]
    layers = json.loads(told.stdout)["layers"]
    assert layers.startswith("compiled" if name in COMPILED else "plain on a CPU: ")
    arguments = train_arguments(text, tmp_path / "dry", *COMMON, *PARTS[name][0])
    done = heedful_cli(*arguments, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert f"{count:,}" in done.stdout + done.stderr


def test_a_format_refuses_it_or_computes_the_same(part, tmp_path):
    name, run = part
    named = PARTS[name][1]
    if name in OF_T5:
        with pytest.raises(ExchangeError) as caught:
            export_model(run, "ctranslate2", tmp_path / "out")
        assert named in str(caught.value)
    elif named:
        not_exported(run, tmp_path, named)
    else:
        parity, _ = export_model(run, "ctranslate2", tmp_path / "out", sentences=["the red dog"])
        assert parity.difference < 1e-4
