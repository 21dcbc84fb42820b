"""A run killed again and again, at random moments, ends with the bytes of one that is not."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from heedful.data.toy_grammar.corpus import split_pairs
from tests.support.commands import train_arguments, write_text

LAST = "step-00000080"


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("precision", "average"), [("fp32", "none"), ("bf16", "0.9")])
def test_twelve_kills_leave_no_trace(tmp_path, precision, average):
    pairs, held_out = split_pairs(3000, 60, seed=2)
    write_text(tmp_path, pairs, "train")
    write_text(tmp_path, held_out, "valid")
    settings = (
        "train.steps=80",
        "train.checkpoint_steps=2",
        "train.validate_steps=9",
        f"train.precision={precision}",
        f"train.ema_decay={average}",
        "train.threads=2",
        "train.micro_batch_tokens=512",
    )

    def start(name, *more):
        arguments = [*map(str, train_arguments(tmp_path, tmp_path / name, *settings)), *more]
        return subprocess.Popen(
            [sys.executable, "-m", "heedful", *arguments],
            stderr=subprocess.PIPE,
            start_new_session=True,
            encoding="utf-8",
        )

    def newest():
        """Steps of the newest checkpoint of the run that is killed."""
        folder = tmp_path / "killed" / "checkpoints"
        return max((int(path.name[5:]) for path in folder.glob("step-????????")), default=0)

    def bytes_of(name):
        folder = tmp_path / name / "checkpoints" / LAST
        return [(folder / f"{n}.safetensors").read_bytes() for n in ("model", "training")]

    whole = start("whole")
    _, errors = whole.communicate()
    assert whole.returncode == 0, errors
    chooser = random.Random(precision)
    kills = 0
    (tmp_path / "killed").mkdir()
    while kills < 12:
        reached = newest() + chooser.choice((0, 2, 4, 6))
        process = start("killed", "--resume")
        if chooser.random() < 0.3:
            time.sleep(chooser.uniform(0.2, 4.0))  # perhaps before its first step
        else:
            while newest() <= reached and process.poll() is None:
                time.sleep(0.005)
            time.sleep(chooser.uniform(0.0, 0.1))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            kills += 1
        _, errors = process.communicate()
        assert "Traceback" not in errors
        if process.returncode == 0:
            break
    process = start("killed", "--resume")
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert kills >= 4
    assert bytes_of("killed") == bytes_of("whole")
