"""Schedules and optimizers of other recipes: resumed, continued, drawn, refused."""

import json
import shutil

import pytest
import safetensors.torch

from heedful.training.history import read_history
from heedful.training.schedule import Schedule
from tests.support.commands import refused, train_arguments

SHORT = (
    "train.steps=24",
    "train.batch_tokens=256",
    "train.checkpoint_steps=6",
    "train.validate_steps=4",
    "train.validation_samples=0",
    "train.precision=fp32",
    "search.max_length=5",
)
# So high a rate that the loss goes up and down.
PLATEAU = (
    "train.schedule=plateau",
    "train.learning_rate=6",
    "train.warmup=0",
    "train.plateau_patience=0",
    "train.best_by=loss",
    "train.optimizer=sgd",
    "train.momentum=0.9",
    "train.clip_norm=1",
)


def last_of(run):
    folder = run / "checkpoints" / "step-00000024"
    state = json.loads((folder / "state.json").read_text())
    del state["counters"]["seconds"], state["since_log"], state["sha256"]["state.json"]
    return [(folder / f"{name}.safetensors").read_bytes() for name in ("model", "training")], state


@pytest.fixture(scope="module")
def lowered(heedful_cli, text, tmp_path_factory):
    """A run whose rate was lowered by its validations."""
    out = tmp_path_factory.mktemp("plateau") / "run"
    done = heedful_cli(*train_arguments(text, out, *SHORT, *PLATEAU))
    assert done.returncode == 0, done.stderr
    assert "loss did not improve: the learning rate is now 3" in done.stderr
    return out


@pytest.mark.soak
def test_a_resumed_run_lowers_its_rate_at_the_same_steps(heedful_cli, text, lowered, tmp_path):
    resumed = tmp_path / "run"
    shutil.copytree(lowered, resumed)
    first, *later = sorted((resumed / "checkpoints").iterdir())  # which ones, the best decides
    for folder in later:
        shutil.rmtree(folder)
    done = heedful_cli(*train_arguments(text, resumed, *SHORT, *PLATEAU), "--resume")
    assert done.returncode == 0, done.stderr
    assert f"continuing from step {int(first.name[5:])}\n" in done.stderr
    assert last_of(resumed) == last_of(lowered)


def test_the_rate_is_logged_and_drawn(heedful_cli, lowered, tmp_path):
    rates = read_history(lowered / "log.jsonl").training["learning_rate"]
    state = last_of(lowered)[1]
    assert state["decays"] > 0
    # A validation after the last step may have lowered it once more.
    assert rates[-1] in [6 * 0.5 ** (state["decays"] - after) for after in (0, 1)]
    assert rates[-1] < 6
    out = tmp_path / "curves.svg"
    assert heedful_cli("plot", lowered, "--out", out).returncode == 0
    assert ">Learning rate<" in out.read_text()


def test_a_tuned_run_keeps_the_lowered_rate_and_the_momentum(heedful_cli, text, lowered, tmp_path):
    files = ["--source", text / "train.en", "--target", text / "train.fr"]
    files += ["--valid-source", text / "valid.en", "--valid-target", text / "valid.fr"]
    chosen = ("train.steps=2", "train.validate_steps=9", "train.batch_tokens=256", *PLATEAU)
    chosen += ("train.precision=fp32", "search.max_length=5", "train.learning_rate=0.2")
    settings = [part for setting in chosen for part in ("--set", setting)]
    command = ["train", "tiny", *files, *settings, "--finetune-from", lowered]
    command += ["--finetune-weights", "last"]
    decays = last_of(lowered)[1]["decays"]
    for options, expected in (
        ((), 0.2),
        (("--keep-state", "schedule", "--keep-state", "optimizer"), 0.2 * 0.5**decays),
    ):
        out = tmp_path / f"tuned-{len(options)}"
        done = heedful_cli(*command, "--out", out, *options)
        assert done.returncode == 0, done.stderr
        line = json.loads((out / "log.jsonl").read_text().splitlines()[0])
        assert line["learning_rate"] == expected
    adam = ["--set", "train.optimizer=adam", "--set", "train.momentum=0"]
    refused(
        heedful_cli(*command, "--out", tmp_path / "x", *adam, "--keep-state", "optimizer"),
        "must continue with the optimizer of",
        "sgd with momentum, but `train.optimizer` is adam",
    )


def test_plain_sgd_has_no_moments_and_is_resumed(heedful_cli, text, tmp_path):
    out = tmp_path / "run"
    settings = (
        *SHORT,
        "train.optimizer=sgd",
        "train.schedule=cosine",
        "train.learning_rate=0.5",
        "train.min_learning_rate=0.01",
        "train.warmup=4",
    )
    command = train_arguments(text, out, *settings, validate=False)
    assert heedful_cli(*command).returncode == 0
    tensors = out / "checkpoints" / "step-00000024" / "training.safetensors"
    assert safetensors.torch.load_file(tensors) == {}
    whole = last_of(out)
    shutil.rmtree(out / "checkpoints" / "step-00000024")
    assert heedful_cli(*command, "--resume").returncode == 0
    assert last_of(out) == whole
    schedule = Schedule("cosine", warmup=4, peak=0.5, minimum=0.01, steps=24)
    history = read_history(out / "log.jsonl").training
    for step, rate in zip(history["step"], history["learning_rate"], strict=True):
        assert rate == schedule.rate(int(step))
    # the end of a cosine is a part of it
    longer = heedful_cli(*command, "--set", "train.steps=30", "--resume")
    refused(longer, "train.steps was 24 and is now 30")


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        (
            ["train.learning_rate=0.1"],
            ["`train.learning_rate` applies only if `train.schedule` is not paper"],
        ),
        (["train.momentum=0.9"], ["set `train.optimizer` to sgd"]),
        (["train.schedule=cosine"], ["`train.learning_rate` must be set"]),
        (
            ["train.schedule=plateau", "train.learning_rate=0.1"],
            ["train.schedule=plateau", "--valid-source and --valid-target"],
        ),
    ],
)
def test_what_would_not_act_is_refused(heedful_cli, text, tmp_path, settings, parts):
    out = tmp_path / "run"
    refused(heedful_cli(*train_arguments(text, out, *settings, validate=False)), *parts)
    assert not out.exists()
