"""Fine-tuning by reward and by risk: resumed to the byte, in the log, and refused where wrong."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
import safetensors.torch
import torch

import heedful
from heedful.errors import HeedfulError
from tests.cli.test_ranks import torchrun
from tests.support.commands import refused

FEW = (
    "train.steps=4",
    "train.checkpoint_steps=2",
    "train.batch_tokens=96",
    "train.micro_batch_tokens=64",
    "train.validate_steps=none",
    "train.precision=fp32",
    "search.max_length=input+3",
)
KINDS = {
    "reward": ("train.objective=reward", "train.samples=3"),
    "risk": ("train.objective=risk", "train.n_best=3", "train.reward_metric=bleu"),
}


def arguments(text, out, parent, *settings, options=()):
    files = ["--source", text / "train.en", "--target", text / "train.fr", "--out", out]
    chosen = [part for setting in (*FEW, *settings) for part in ("--set", setting)]
    finetune = [] if parent is None else ["--finetune-from", parent]
    return ["train", "tiny", *files, *chosen, *finetune, *options]


def weights(run, step=4):
    folder = run / "checkpoints" / f"step-{step:08d}"
    return [(folder / f"{name}.safetensors").read_bytes() for name in ("model", "training")]


def training_lines(run):
    """The log by step, without what depends on the clock."""
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    clock = ("seconds", "target_tokens_per_second", "memory")
    kept = ({k: v for k, v in line.items() if k not in clock} for line in lines)
    return {line["step"]: line for line in kept}


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_run_ends_with_the_same_bytes_and_log(zygote, text, trained, tmp_path, kind):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    process = zygote.start(*arguments(text, whole, trained, *KINDS[kind]))
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "objective: " in errors
    assert f"  {kind} 0." in errors

    killed.mkdir()
    command = arguments(text, killed, trained, *KINDS[kind], options=("--resume",))
    process = zygote.start(*command)
    first = killed / "checkpoints" / "step-00000002"
    while process.poll() is None and not first.exists():
        time.sleep(0.001)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    process = zygote.start(*command)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert weights(killed) == weights(whole)
    ours, theirs = training_lines(killed), training_lines(whole)
    if ours.keys() != theirs.keys():  # a slow machine has a line every ten seconds, too
        means = ("loss", "nll", "perplexity", "padding", kind)  # since the line before
        for lines in (ours, theirs):
            lines[4] = {k: v for k, v in lines[4].items() if k not in means} | {kind: 0.5}
    assert ours[4] == theirs[4]
    assert 0.0 < theirs[4][kind] < 1.0
    # the weights are not those of the likelihood alone
    assert weights(whole, 2) != weights(whole)


@pytest.mark.parametrize("kind", KINDS)
def test_two_ranks_give_the_weights_of_one(zygote, heedful_cli, text, trained, tmp_path, kind):
    # plain SGD: Adam makes whole steps of what rounding leaves of a zero gradient
    settings = ("train.optimizer=sgd", "train.schedule=constant", "train.learning_rate=0.1")
    settings = (*KINDS[kind], *settings, "train.warmup=0", "train.steps=3")
    one, two = tmp_path / "one", tmp_path / "two"
    last = ("--finetune-weights", "last")
    done = heedful_cli(*arguments(text, one, trained, *settings, options=last))
    assert done.returncode == 0, done.stderr
    program = ["--no-python", zygote.programs / "heedful"]
    command = arguments(text, two, trained, *settings, options=last)
    process = torchrun(zygote, program, command)
    _, errors = process.communicate(timeout=500)
    assert process.returncode == 0, errors
    assert "2 ranks" in errors
    file = Path("checkpoints", "step-00000003", "model.safetensors")
    alone, shared = (safetensors.torch.load_file(out / file) for out in (one, two))
    before = safetensors.torch.load_file(trained / "checkpoints" / "step-00000024" / file.name)
    moved = max(float((alone[name] - before[name]).abs().max()) for name in alone)
    for name, tensor in alone.items():
        torch.testing.assert_close(shared[name], tensor, atol=0.01 * moved, rtol=0, msg=name)


def test_its_log_is_plotted_and_its_run_described(heedful_cli, text, trained, tmp_path):
    out, plot = tmp_path / "run", tmp_path / "curves.svg"
    done = heedful_cli(*arguments(text, out, trained, *KINDS["reward"]))
    assert done.returncode == 0, done.stderr
    done = heedful_cli("plot", out, trained, "--out", plot)
    assert done.returncode == 0, done.stderr
    assert "Training reward" in plot.read_text(encoding="utf-8")
    planned = heedful_cli(*arguments(text, tmp_path / "x", trained, *KINDS["risk"]), "--dry-run")
    assert "per side, by risk" in planned.stdout
    done = heedful_cli("info", out)
    assert done.returncode == 0, done.stderr
    settings = json.loads((out / "config.json").read_text())["settings"]["train"]
    assert (settings["objective"], settings["samples"]) == ("reward", 3)


@pytest.mark.parametrize(
    ("settings", "options", "parts"),
    [
        (KINDS["reward"], (), ("needs --finetune-from", "leave train.objective out")),
        (KINDS["risk"], (), ("train.objective = risk", "needs --finetune-from")),
        (KINDS["reward"], ("--reset", "decoder"), ("--reset decoder", "noise")),
        (("train.objective=bleu",), (), ("train.objective",)),
        (("train.objective=reward", "train.samples=1"), (), ("train.samples",)),
        (("train.samples=5",), (), ("`train.samples` applies only if `train.objective` is",)),
        (("train.objective=reward", "train.n_best=4"), (), ("`train.n_best` applies only if",)),
        (("train.objective=risk", "train.n_best=1"), (), ("train.n_best",)),
        (("train.objective=risk", "train.risk_sharpness=0"), (), ("train.risk_sharpness",)),
        (("train.objective=risk", "train.likelihood_weight=-1"), (), ("likelihood_weight",)),
        (("train.objective=reward", "train.reward_metric=ter"), (), ("train.reward_metric",)),
        (
            ("train.objective=reward", "train.label_smoothing=0.2"),
            (),
            ("`train.label_smoothing` applies only if `train.objective` is likelihood",),
        ),
    ],
)
def test_what_cannot_be_is_refused(heedful_cli, text, trained, tmp_path, settings, options, parts):
    out = tmp_path / "run"
    parent = trained if options else None
    refused(heedful_cli(*arguments(text, out, parent, *settings, options=options)), *parts)
    assert not out.exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"train.objective": True},
        {"train.objective": "reward", "train.samples": "many"},
        {"train.objective": "reward", "train.samples": 2.5},
        {"train.objective": "reward", "train.likelihood_weight": "much"},
        {"train.objective": "reward", "train.likelihood_weight": float("nan")},
        {"train.objective": "risk", "train.risk_reference": "perhaps"},
    ],
)
def test_wrong_types_from_python_are_refused(text, trained, tmp_path, settings):
    with pytest.raises(HeedfulError, match=f"train.{list(settings)[-1].split('.')[1]}"):
        heedful.train(
            "tiny",
            out=tmp_path / "run",
            source=text / "train.en",
            target=text / "train.fr",
            settings=settings,
            finetune_from=trained,
        )
    assert not (tmp_path / "run").exists()
