"""
A run that is killed and resumed ends with the same bytes as one that never was.

Real processes, SIGKILL to the whole process group, at moments that are not chosen by the program:
while subwords are trained, in the middle of steps, while a checkpoint is being written. In bf16,
and at a dozen random moments: tests/soak/test_kills.py.
"""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from tests.support.commands import refused, train_arguments, train_run
from tests.support.weights import assert_same_weights


def wait_until(condition, process):
    """Wait for something to be seen on the disk; False if the process ended without it."""
    while process.poll() is None:
        if condition():
            return True
        time.sleep(0.0005)
    return condition()


def kill_when(zygote, condition, arguments):
    process = zygote.start(*arguments)
    happened = wait_until(condition, process)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    _, errors = process.communicate()
    assert "Traceback" not in errors
    return happened


def finish(zygote, arguments):
    process = zygote.start(*arguments)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    return errors


def test_a_killed_run_ends_with_the_same_bytes(zygote, text, tmp_path):
    settings = (
        "train.steps=18",
        "train.checkpoint_steps=3",
        "train.validate_steps=7",
        "train.precision=fp32",
        "train.ema_decay=0.9",
        "train.threads=2",
        "train.batch_tokens=192",
        "train.micro_batch_tokens=96",
        "search.max_length=5",
    )
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    finish(zygote, train_arguments(text, whole, *settings))
    killed.mkdir()
    command = [*train_arguments(text, killed, *settings), "--resume"]
    checkpoints = killed / "checkpoints"

    def names():
        return [entry.name for entry in checkpoints.iterdir()] if checkpoints.is_dir() else []

    kill_when(zygote, killed.exists, command)  # at once: nothing but an empty folder, perhaps
    kill_when(zygote, (killed / "tokenizer.model").exists, command)
    # The moments of writing are short; a busy machine may let one look only when all are over.
    for _ in range(10):
        if kill_when(zygote, lambda: any(name.startswith(".step") for name in names()), command):
            break
        shutil.rmtree(killed)
    else:
        pytest.fail("nobody was ever seen writing a checkpoint")
    assert kill_when(zygote, lambda: any(name >= "step-00000006" for name in names()), command)
    kill_when(
        zygote,
        lambda: any(n.startswith(".step") and n > ".step-00000009" for n in names()),
        command,
    )
    errors = finish(zygote, command)
    assert "continuing from step" in errors
    assert_same_weights(killed, whole, "step-00000018")
    assert not any(name.startswith(".") for name in names())


PLAIN = (
    "train.steps=30",
    "train.batch_tokens=192",
    "train.precision=fp32",
    "train.checkpoint_steps=none",
)


@pytest.fixture(scope="module")
def whole(zygote, text, tmp_path_factory):
    """A run without interruption."""
    out = tmp_path_factory.mktemp("whole") / "run"
    finish(zygote, train_arguments(text, out, *PLAIN, validate=False))
    return out


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.soak)]
)
def test_a_signal_ends_with_a_checkpoint_and_the_rest_is_the_same(
    zygote, text, whole, tmp_path, number
):
    stopped = tmp_path / "stopped"
    validated = ("train.validate_steps=2", "search.max_length=5")
    command = train_arguments(text, stopped, *PLAIN, *validated)
    for _ in range(10):  # on a busy machine the run may have ended before the signal comes
        process = zygote.start(*command)
        assert wait_until((stopped / "best.json").exists, process)
        process.send_signal(number)
        _, errors = process.communicate()
        if process.returncode != 0:
            break
        shutil.rmtree(stopped)
    assert process.returncode == 1
    message = errors.strip().splitlines()[-1]
    assert f"ended by {number.name} at step" in message
    assert "--resume" in message
    finish(zygote, [*command, "--resume"])
    assert_same_weights(stopped, whole, "step-00000030")


def test_the_log_of_a_killed_run_has_every_step_once(zygote, text, tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    settings = ("train.steps=18", "train.checkpoint_steps=3", "train.validate_steps=3")
    settings += ("train.batch_tokens=192", "search.max_length=5")
    command = [*train_arguments(text, out, *settings), "--resume"]
    kill_when(zygote, (out / "checkpoints" / "step-00000009").exists, command)
    finish(zygote, command)
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    validated = [line["step"] for line in lines if "bleu" in line]
    assert validated == list(range(3, 19, 3))


def test_a_run_goes_on_in_another_precision_only_if_that_is_asked_for(heedful_cli, text, tmp_path):
    out = tmp_path / "run"
    few = ("train.steps=3", "train.batch_tokens=192")
    train_run(heedful_cli, text, out, *few, "train.precision=fp32")
    words = [*train_arguments(text, out, *few, "train.precision=bf16", "train.steps=5"), "--resume"]
    refused(heedful_cli(*words), "train.precision was 'fp32'", "add --allow-inexact-resume")
    done = heedful_cli(*words, "--allow-inexact-resume")
    assert done.returncode == 0, done.stderr
    assert json.loads((out / "config.json").read_text())["choices"]["precision"] == "bf16"


@pytest.mark.parametrize("name", ["source.ids", "target.ids"])
def test_training_whose_ids_are_cut_off_ends_with_a_sentence(zygote, text, tmp_path, name):
    out = tmp_path / "run"
    settings = ("train.steps=100000", "train.checkpoint_steps=3", "train.precision=fp32")
    command = train_arguments(text, out, *settings, validate=False)
    process = zygote.start(*command)
    assert wait_until((out / "checkpoints" / "step-00000003").is_dir, process)
    os.truncate(out / "data" / name, 100)
    output, errors = process.communicate()
    done = subprocess.CompletedProcess(command, process.returncode, output, errors)
    refused(done, f"{out / 'data' / name} must keep its", "100 now", "Checkpoints are intact")
    # the way out of the message
    shutil.rmtree(out / "data")
    last = max(int(entry.name[-8:]) for entry in (out / "checkpoints").glob("step-*"))
    errors = finish(zygote, [*command, "--resume", "--set", f"train.steps={last + 1}"])
    assert f"continuing from step {last}" in errors
