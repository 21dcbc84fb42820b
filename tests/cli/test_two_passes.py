"""Training by SimCut and R-Drop: resumed to the byte, in several processes, and refused."""

import json
import shutil
from pathlib import Path

import pytest
import safetensors.torch

from tests.cli.test_ranks import torchrun
from tests.support.commands import refused, resumes_alike, train_arguments, train_run

SHORT = ("train.steps=8", "train.batch_tokens=256", "train.micro_batch_tokens=128")
SHORT += ("train.checkpoint_steps=2", "train.validate_steps=none", "train.precision=fp32")
SIMCUT = (*SHORT, "train.objective=simcut")
RDROP = (*SHORT, "train.objective=rdrop")


def lines_of(run):
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [line for line in lines if "loss" in line]


@pytest.fixture(scope="module")
def late(heedful_cli, text, tmp_path_factory):
    """A run by SimCut whose second passes begin after three of eight steps."""
    out = tmp_path_factory.mktemp("late") / "run"
    return train_run(heedful_cli, text, out, *SIMCUT, "train.second_pass_start=3")


@pytest.mark.parametrize("step", [2, 4])
def test_a_resumed_run_has_the_same_bytes(heedful_cli, text, late, tmp_path, step):
    """From a checkpoint before the second passes begin, and from one after."""
    out = tmp_path / "run"
    settings = (*SIMCUT, "train.second_pass_start=3")
    shutil.copytree(late, out)
    for later in range(step + 2, 9, 2):
        shutil.rmtree(out / "checkpoints" / f"step-{later:08}")
    train_run(heedful_cli, text, out, *settings, options=["--resume"])
    for file in ("model.safetensors", "training.safetensors"):
        place = f"checkpoints/step-00000008/{file}"
        assert (out / place).read_bytes() == (late / place).read_bytes()


def test_rdrop_is_resumed_with_the_same_bytes(heedful_cli, text, tmp_path):
    whole = train_run(heedful_cli, text, tmp_path / "whole", *RDROP)
    resumes_alike(heedful_cli, text, whole, tmp_path / "run", RDROP, 4, 8)


def test_the_first_steps_are_those_of_the_likelihood(heedful_cli, text, late, tmp_path):
    plain = train_run(heedful_cli, text, tmp_path / "run", *SHORT)
    bytes_of = [
        (run / "checkpoints" / f"step-{step:08}" / "model.safetensors").read_bytes()
        for step in (2, 4)
        for run in (plain, late)
    ]
    assert bytes_of[0] == bytes_of[1] and bytes_of[2] != bytes_of[3]


def test_log_info_plot_and_dry_run_tell_of_it(heedful_cli, text, late, tmp_path):
    assert lines_of(late)[-1]["divergence"] > 0.0  # earlier lines are there on a slow machine
    settings = (*SIMCUT, "train.second_pass_start=0.5")
    command = train_arguments(text, tmp_path / "run", *settings)
    done = heedful_cli(*command, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert (
        "by simcut from step 5 on, with twice the operations per step; in total 1.5 times"
        in done.stdout
    )
    done = heedful_cli("info", late)
    assert "objective: simcut, two passes from step 4" in done.stdout, done.stderr
    done = heedful_cli("plot", late, "--out", tmp_path / "curves.svg")
    assert done.returncode == 0, done.stderr
    assert "Training divergence" in (tmp_path / "curves.svg").read_text(encoding="utf-8")


def test_two_ranks_give_the_weights_of_one(zygote, heedful_cli, text, tmp_path):
    # plain SGD: Adam makes whole steps of what rounding leaves of a zero gradient. Dropout is off
    # and all tokens are cut: else each micro-batch draws its own numbers, and two ranks have others
    settings = (*SIMCUT, "train.optimizer=sgd", "train.schedule=constant", "train.warmup=0")
    settings += ("train.learning_rate=0.1", "train.steps=3", "model.dropout=0")
    settings += ("train.simcut_share=0.99999999",)
    one, two = tmp_path / "one", tmp_path / "two"
    train_run(heedful_cli, text, one, *settings)
    program = ["--no-python", zygote.programs / "heedful"]
    process = torchrun(zygote, program, train_arguments(text, two, *settings))
    _, errors = process.communicate(timeout=500)
    assert process.returncode == 0, errors
    assert "2 ranks" in errors and "SimCut, two passes" in errors
    file = Path("checkpoints", "step-00000003", "model.safetensors")
    alone, shared = (safetensors.torch.load_file(out / file) for out in (one, two))
    for name, tensor in alone.items():
        assert float((shared[name] - tensor).norm()) <= 1e-4 * float(tensor.norm()) + 1e-5, name


def test_a_share_of_the_steps_keeps_their_number(heedful_cli, text, tmp_path):
    settings = (*SIMCUT, "train.second_pass_start=0.5")
    out = train_run(heedful_cli, text, tmp_path / "run", *settings, "train.steps=2")
    command = train_arguments(text, out, *settings, "train.steps=4")
    refused(heedful_cli(*command, "--resume"), "train.steps was 2 and is now 4")


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        (("train.objective=reward",), ("--finetune-from",)),
        (("train.objective=simcut", "train.rdrop_weight=2"), ("rdrop_weight` applies only",)),
        (("train.objective=rdrop", "train.simcut_share=0.1"), ("simcut_share` applies only",)),
        (("train.second_pass_start=0.5",), ("`train.second_pass_start` applies only if",)),
        (
            ("train.objective=simcut", "train.guided_attention=1"),
            ("`train.guided_attention` applies only if `train.objective` is likelihood",),
        ),
        (
            ("train.objective=rdrop", "train.likelihood_weight=1"),
            ("`train.likelihood_weight` applies only if `train.objective` is reward or risk",),
        ),
        (
            ("train.objective=simcut", "model.norm_kind=batch"),
            ("`train.objective` = simcut", "running averages", "layer or rms"),
        ),
        (
            ("train.objective=rdrop", "model.dropout=0"),
            ("different dropout masks", "such as `model.dropout`, must be above 0", "simcut"),
        ),
        (
            ("train.objective=simcut", "train.second_pass_start=24"),
            ("`train.second_pass_start` must be a fraction", "(24)", "got 24"),
        ),
        (
            ("train.objective=simcut", "train.second_pass_start=1.5"),
            ("`train.second_pass_start`", "got 1.5"),
        ),
        (("train.objective=simcut", "train.simcut_share=0"), ("train.simcut_share",)),
        (("train.objective=simcut", "train.simcut_weight=0"), ("train.simcut_weight",)),
    ],
)
def test_what_cannot_be_is_refused(heedful_cli, text, tmp_path, settings, parts):
    out = tmp_path / "run"
    refused(heedful_cli(*train_arguments(text, out, *settings)), *parts)
    assert not out.exists()
