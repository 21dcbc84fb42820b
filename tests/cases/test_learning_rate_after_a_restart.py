"""After a restart with more steps or another batch the learning rate begins anew."""

import json

import pytest

from tests.support.commands import refused, train_arguments, train_run, write_text

SHORT = (
    "data.vocabulary_size=300",
    "train.batch_tokens=300",
    "train.checkpoint_steps=4",
    "train.validate_steps=none",
)
PAPER = "train.schedule=paper"
ROOT = "train.schedule=inverse_sqrt", "train.learning_rate=0.001"


@pytest.fixture(scope="module")
def text(grammar, tmp_path_factory):
    """Training text."""
    folder = tmp_path_factory.mktemp("text")
    pairs, held_out = grammar
    write_text(folder, pairs[:300], "train")
    write_text(folder, held_out, "valid")
    return folder


def rates(run):
    """The rates of a log, by step."""
    lines = map(json.loads, (run / "log.jsonl").read_text(encoding="utf-8").splitlines())
    return {line["step"]: line["learning_rate"] for line in lines if "learning_rate" in line}


@pytest.mark.parametrize("schedule", [(PAPER,), ROOT])
def test_more_steps_go_on_with_the_rate_and_the_bytes_of_one_long_run(
    heedful_cli, text, tmp_path, schedule
):
    settings = (*SHORT, *schedule, "train.warmup=5")
    whole = train_run(heedful_cli, text, tmp_path / "whole", *settings, "train.steps=12")
    parts = tmp_path / "parts"
    train_run(heedful_cli, text, parts, *settings, "train.steps=8")
    train_run(heedful_cli, text, parts, *settings, "train.steps=12", options=["--resume"])
    last = "checkpoints/step-00000012"
    for file in ("model.safetensors", "training.safetensors"):
        assert (parts / last / file).read_bytes() == (whole / last / file).read_bytes()
    assert rates(parts)[12] == rates(whole)[12]


def test_what_would_change_the_rate_is_refused_with_the_way_to_go_on(heedful_cli, text, tmp_path):
    cosine = ("train.schedule=cosine", "train.learning_rate=0.001")
    for number, (schedule, change) in enumerate(
        [
            ((), "train.batch_tokens=600"),
            ((), "train.warmup=20"),
            ((), "train.learning_rate_factor=0.5"),
            (cosine, "train.steps=9"),
        ]
    ):
        out = tmp_path / ("cosine" if schedule else "paper")
        if not out.exists():
            train_run(heedful_cli, text, out, *SHORT, *schedule, "train.steps=4")
        again = train_arguments(text, out, *SHORT, *schedule, "train.steps=4", change)
        name = change.partition("=")[0]
        way = f"--finetune-from {out} --keep-state schedule"
        refused(heedful_cli(*again, "--resume"), f"{name} was ", way)
        if number:
            continue
        # the way works
        files = ["--finetune-from", out, "--keep-state", "schedule"]
        moved = train_arguments(text, tmp_path / "moved", *SHORT, "train.steps=4", change)
        done = heedful_cli(*moved, *files)
        assert done.returncode == 0, done.stderr
        assert min(rates(tmp_path / "moved").values()) > max(rates(out).values())
