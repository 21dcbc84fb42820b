"""Both directions first: two runs by one command."""

import json
import shutil

import safetensors.torch

from tests.cli.test_ranks import torchrun
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

    # a longer training continues the second, whose origin does not change
    done = heedful_cli(*command, "--set", "train.steps=7", "--resume")
    assert done.returncode == 0, done.stderr
    assert (settings_of(both)["train"]["steps"], settings_of(out)["train"]["steps"]) == (2, 5)
    assert (out / "checkpoints" / "step-00000005").exists()


def test_pairs_of_two_scripts_are_judged_in_both_directions(heedful_cli, tmp_path):
    lines = {"en": "a dog sleeps\n", "ru": "собака спит\n"}
    for language, line in lines.items():
        (tmp_path / f"train.{language}").write_text(line * 30 + "1 – да no\n", "utf-8")
    done = heedful_cli(
        *("train", "tiny", "--source", tmp_path / "train.en", "--target", tmp_path / "train.ru"),
        *("--out", tmp_path / "run", "--both-directions-first", "0.5", "--set", "train.steps=2"),
        *("--set", "data.min_script_share=0.9", "--set", "data.vocabulary_size=60"),
    )
    assert done.returncode == 0, done.stderr
    assert "60 pairs kept, 2 dropped (2 script)" in done.stderr
    assert "30 pairs kept, 1 dropped (1 script)" in done.stderr


def test_two_ranks_give_the_weights_of_one(zygote, heedful_cli, text, tmp_path):
    # plain SGD without dropout, for the reasons of tests/cli/test_two_passes.py
    settings = (*SHORT, "train.optimizer=sgd", "train.schedule=constant", "train.warmup=0")
    settings += ("train.learning_rate=0.1", "model.dropout=0")
    one, two = tmp_path / "one", tmp_path / "two"
    first, second = (
        [*train_arguments(text, out, *settings, validate=False), "--both-directions-first", "0.4"]
        for out in (one, two)
    )
    done = heedful_cli(*first)
    assert done.returncode == 0, done.stderr
    process = torchrun(zygote, ["--no-python", zygote.programs / "heedful"], second)
    _, errors = process.communicate(timeout=500)
    assert process.returncode == 0, errors
    assert errors.count("2 ranks") == 2  # of both trainings
    for name, step in (("-both", 2), ("", 3)):
        file = f"checkpoints/step-{step:08}/model.safetensors"
        alone, shared = (
            safetensors.torch.load_file(out.with_name(f"{out.name}{name}") / file)
            for out in (one, two)
        )
        for weight, tensor in alone.items():
            gap = float((shared[weight] - tensor).norm())
            assert gap <= 1e-4 * float(tensor.norm()) + 1e-5, weight


def test_what_cannot_be_is_refused(heedful_cli, text, tmp_path):
    out = tmp_path / "run"
    command = train_arguments(text, out, *SHORT, "train.objective=risk", validate=False)
    parts = ("begins with new weights", "risk")
    refused(heedful_cli(*command, "--both-directions-first", "0.5"), *parts)
    assert not [*tmp_path.glob("run*")]


def test_text_in_another_form_is_refused(heedful_cli, tmp_path):
    command = ["train", "tiny", "--data", tmp_path, "--out", tmp_path / "run"]
    refused(
        heedful_cli(*command, "--both-directions-first", "0.5"), "must have --source and --target"
    )
