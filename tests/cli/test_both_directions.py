"""Both directions first: two runs by one command."""

import json
import shutil

import pytest

from tests.support.commands import refused, train_arguments

SHORT = ("train.steps=5", "train.batch_tokens=256", "train.validate_steps=none")
SHORT += ("train.precision=fp32", "train.checkpoint_steps=none")


def settings_of(run):
    return json.loads((run / "config.json").read_text())["settings"]


def test_one_command_trains_both_directions_and_then_one(heedful_cli, text, tmp_path):
    out, both = tmp_path / "run", tmp_path / "run-both"
    command = train_arguments(text, out, *SHORT, validate=False)
    command += ["--both-directions-first", "0.4"]
    done = heedful_cli(*command, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "2 steps of" in done.stdout and "train.steps=3" in done.stdout
    assert not out.exists() and not both.exists()
    done = heedful_cli(*command)
    assert done.returncode == 0, done.stderr
    first, second = settings_of(both), settings_of(out)
    assert (first["train"]["steps"], second["train"]["steps"]) == (2, 3)
    assert second["data"]["target_language"] == first["data"]["target_language"] == "fr"
    origin = json.loads((out / "origin.json").read_text())
    assert (origin["run"], origin["step"], origin["keep_state"]) == (str(both), 2, [])
    names = ("tokenizer.model", "tokenizer.json")
    assert all((out / name).read_bytes() == (both / name).read_bytes() for name in names)
    # each pair twice, once in each direction
    sizes = [json.loads((run / "config.json").read_text())["corpus"] for run in (both, out)]
    assert len(sizes[0]["source"]) == 2 * len(sizes[1]["source"]) == 2

    # what was interrupted between the two goes on with the second, to the same bytes
    place = out / "checkpoints" / "step-00000003" / "model.safetensors"
    before = place.read_bytes()
    shutil.rmtree(out)
    done = heedful_cli(*command, "--resume")
    assert done.returncode == 0, done.stderr
    assert place.read_bytes() == before
    refused(heedful_cli(*command), "--out must be a new or empty folder", str(out))


@pytest.mark.parametrize(
    ("settings", "options", "parts"),
    [
        ((), ("--both-directions-first", "1.5"), ("above 0 and below 1", "1.5 of 5 steps")),
        (
            ("data.shared_vocabulary=false", "model.tie_embeddings=output"),
            ("--both-directions-first", "0.5"),
            ("one vocabulary for both languages", "data.shared_vocabulary"),
        ),
        (
            ("train.objective=risk",),
            ("--both-directions-first", "0.5"),
            ("begins with new weights", "risk"),
        ),
        (
            (),
            ("--both-directions-first", "0.5", "--finetune-from", "somewhere"),
            ("begins with new weights", "got --finetune-from"),
        ),
    ],
)
def test_what_cannot_be_is_refused(heedful_cli, text, tmp_path, settings, options, parts):
    out = tmp_path / "run"
    command = train_arguments(text, out, *SHORT, *settings, validate=False)
    refused(heedful_cli(*command, *options), *parts)
    assert not [*tmp_path.glob("run*")]


def test_text_in_another_form_is_refused(heedful_cli, tmp_path):
    command = ["train", "tiny", "--data", tmp_path, "--out", tmp_path / "run"]
    refused(heedful_cli(*command, "--both-directions-first", "0.5"), "exchanges --source")
