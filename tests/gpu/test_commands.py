"""The commands on a GPU: a run is trained, stopped, continued, used there and elsewhere."""

import json

import pytest
import safetensors.torch
import torch

import heedful
from heedful.errors import HeedfulError
from tests.gpu.runs import (
    SETTINGS,
    STEPS,
    bytes_of,
    ended_well,
    log,
    on_gpu,
    perplexities,
    translated,
)
from tests.support.commands import train_arguments


@pytest.fixture(scope="module")
def runs(heedful_cli, text, tmp_path_factory):
    """A run in each precision."""
    folder = tmp_path_factory.mktemp("runs")
    for precision in ("fp32", "bf16"):
        wanted = f"train.precision={precision}"
        ended_well(heedful_cli(*on_gpu(text, folder / precision, wanted)))
    return folder


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_run_learns_and_notes_the_memory_of_the_gpu(runs, precision):
    found = perplexities(runs / precision)
    assert found[-1] < 0.5 * found[0]
    memory = [line["memory"] for line in log(runs / precision) if "memory" in line]
    assert 0 < max(memory) < 4 << 30


def test_both_precisions_and_a_processor_learn_alike(runs, heedful_cli, text, tmp_path):
    ended_well(heedful_cli(*train_arguments(text, tmp_path / "cpu", *SETTINGS)))
    elsewhere = perplexities(tmp_path / "cpu")[-1]
    for precision in ("fp32", "bf16"):
        assert perplexities(runs / precision)[-1] == pytest.approx(elsewhere, rel=0.2)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_stopped_run_goes_on_there(runs, heedful_cli, text, tmp_path, precision):
    wanted = f"train.precision={precision}"
    out = tmp_path / "run"
    ended_well(heedful_cli(*on_gpu(text, out, wanted, "train.steps=50")))
    ended_well(heedful_cli(*on_gpu(text, out, wanted), "--resume"))
    # not the same bytes: sums on a GPU have no fixed order
    assert perplexities(out)[-1] == pytest.approx(perplexities(runs / precision)[-1], rel=0.2)


def test_a_deterministic_run_has_the_same_bytes_when_it_was_stopped(heedful_cli, text, tmp_path):
    wanted = ("train.precision=bf16", "train.deterministic=true", "train.keep_last=9")
    whole, again, parts = tmp_path / "whole", tmp_path / "again", tmp_path / "parts"
    for out in (whole, again):
        ended_well(heedful_cli(*on_gpu(text, out, *wanted, "train.steps=100")))
    ended_well(heedful_cli(*on_gpu(text, parts, *wanted, "train.steps=50")))
    ended_well(heedful_cli(*on_gpu(text, parts, *wanted, "train.steps=100"), "--resume"))
    assert len(bytes_of(whole)) >= 4
    assert bytes_of(again) == bytes_of(whole)
    assert bytes_of(parts) == bytes_of(whole)


def test_steps_have_no_padding_and_the_log_says_how_long_the_gpu_waited(runs):
    lines = [line for line in log(runs / "bf16") if "padding" in line]
    assert {line["padding"] for line in lines} == {0.0}
    assert all(0.0 <= line["waiting"] <= 1.0 for line in lines[1:])
    assert not [line for line in log(runs / "fp32") if "waiting" in line]


def test_a_run_of_a_processor_goes_on_there_only_if_that_is_asked_for(heedful_cli, text, tmp_path):
    out = tmp_path / "run"
    ended_well(heedful_cli(*train_arguments(text, out, *SETTINGS, "train.steps=50")))
    words = on_gpu(text, out)
    refused = heedful_cli(*words, "--resume")
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr
    ended_well(heedful_cli(*words, "--resume", "--allow-inexact-resume"))
    choices = json.loads((out / "config.json").read_text(encoding="utf-8"))["choices"]
    assert choices["device"] == "cuda"
    assert perplexities(out)[-1] < perplexities(out)[0]


def test_translations_there_are_those_of_a_processor(runs, heedful_cli, text):
    exact = ("--precision", "fp32")
    here = translated(heedful_cli, runs / "fp32", text, "cpu", *exact)
    assert len(set(here)) > 10
    assert translated(heedful_cli, runs / "fp32", text, "cuda", *exact) == here
    rounded = translated(heedful_cli, runs / "fp32", text, "cuda", "--precision", "bf16")
    same = sum(one == other for one, other in zip(here, rounded, strict=True))
    assert same >= 0.8 * len(here)


def _text(line):
    """A translation without its score, whose last digits may differ."""
    return line.split(" ||| ")[:2]


@pytest.mark.parametrize(
    "options",
    [
        ("--beam", 1),
        ("--sample", "--n-best", 2),
        ("--diverse-groups", 2, "--n-best", 2),
        ("--no-repeat-ngram", 2),
        ("--min-length", 6),
    ],
    ids=str,
)
def test_options_of_the_search_give_there_what_they_give_here(options, runs, heedful_cli, text):
    here, there = (
        translated(heedful_cli, runs / "fp32", text, device, "--precision", "fp32", *options)
        for device in ("cpu", "cuda")
    )
    same = sum(_text(one) == _text(other) for one, other in zip(here, there, strict=True))
    assert same >= 0.95 * len(here)  # a draw or a score may lie at the edge of two tokens


def test_scores_and_figures_are_those_of_a_processor(runs, heedful_cli, text):
    files = ("--source", text / "valid.en", "--target", text / "valid.fr")
    exact = ("--precision", "fp32")
    here, there = (
        ended_well(heedful_cli("score", runs / "fp32", *files, "--device", device, *exact))
        for device in ("cpu", "cuda")
    )
    for one, other in zip(here.split(), there.split(), strict=True):
        if one != other:
            assert float(other) == pytest.approx(float(one), abs=0.05)


def test_a_file_of_weights_trained_there_is_one_of_a_processor(runs):
    (file,) = (runs / "bf16" / "checkpoints").glob(f"step-{STEPS:08}/model.safetensors")
    for name, tensor in safetensors.torch.load_file(file).items():
        assert tensor.device.type == "cpu", name
        assert tensor.isfinite().all(), name


def test_one_rank_trains_through_nccl(zygote, text, tmp_path):
    launcher = "from torch.distributed.run import main; main()"
    words = ["--standalone", "--nproc-per-node", 1, "-m", "heedful"]
    out = tmp_path / "run"
    process = zygote.start("-c", launcher, *words, *on_gpu(text, out, "train.steps=20"))
    _, errors = process.communicate(timeout=500)
    assert process.returncode == 0, errors


def test_a_gpu_that_is_not_there_is_refused_by_name(heedful_cli, runs, text):
    missing = f"cuda:{torch.cuda.device_count()}"
    done = heedful_cli(
        "translate", runs / "fp32", "--input", text / "valid.en", "--device", missing
    )
    assert done.returncode == 2
    assert missing in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_gpu_names_the_setting_to_change(text, tmp_path):
    torch.cuda.set_per_process_memory_fraction(0.002)
    settings = ("train.device=cuda", "model.d_ff=16384", "model.d_model=1024", *SETTINGS)
    files = {side: text / f"train.{end}" for side, end in (("source", "en"), ("target", "fr"))}
    try:
        with pytest.raises(HeedfulError, match=r"memory"):
            heedful.train("tiny", **files, out=tmp_path / "run", settings=settings, quiet=True)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_speed_is_measured_there(heedful_cli):
    words = ("bench", "train", "tiny", "--device", "cuda", "--steps", 2, "--rounds", 1, "--json")
    found = json.loads(ended_well(heedful_cli(*words)))
    assert "cuda" in json.dumps(found["machine"])
    words = ("bench", "translate", "--recipe", "tiny", "--lines", 8, "--tokens", 4)
    more = ("--device", "cuda", "--repeats", 1, "--profile", "--json")
    json.loads(ended_well(heedful_cli(*words, *more)))
