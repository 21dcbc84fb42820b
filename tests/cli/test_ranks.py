"""Two processes under torchrun: the same result, and a clean end when one of them dies."""

import os
import signal
import time
from pathlib import Path

import pytest
import safetensors.torch
import torch

from heedful.translation.translator import Translator
from tests.support.commands import train_arguments

LAUNCHER = "from torch.distributed.run import main; main()"


def torchrun(zygote, program, arguments):
    """Start torchrun's module, with two ranks of a program."""
    two = ["--standalone", "--nproc-per-node", 2]
    return zygote.start("-c", LAUNCHER, *two, *program, *arguments)


@pytest.fixture(scope="module")
def forked(zygote):
    """Ranks that are forks of the zygote."""
    return ["--no-python", zygote.programs / "heedful"]


FROM_NOTHING = ["-m", "heedful"]


def test_two_ranks_give_the_weights_of_one(zygote, forked, heedful_cli, text, tmp_path):
    settings = (
        "train.steps=12",
        "train.batch_tokens=512",
        "train.precision=fp32",
        "model.dropout=0.0",  # drawn for a micro-batch, and two ranks cut a batch otherwise
        "train.validate_steps=6",
        "search.max_length=5",
    )
    one, two = tmp_path / "one", tmp_path / "two"
    done = heedful_cli(*train_arguments(text, one, *settings))
    assert done.returncode == 0, done.stderr
    process = torchrun(zygote, forked, train_arguments(text, two, *settings))
    _, errors = process.communicate(timeout=500)
    assert process.returncode == 0, errors
    assert "2 ranks" in errors
    file = Path("checkpoints", "step-00000012", "model.safetensors")
    alone, shared = (safetensors.torch.load_file(out / file) for out in (one, two))
    for name, tensor in alone.items():
        # Only the order of fp32 additions differs; the batches are the same. The bound is
        # a hundredth of how far weights have moved by now.
        one_tensor, other = (keys_bias_removed(name, t) for t in (tensor, shared[name]))
        torch.testing.assert_close(other, one_tensor, atol=1e-4, rtol=1e-3, msg=name)
    scores = [
        Translator.load(out, precision="fp32").score(["the dog sleeps"], ["le chien dort"])[0]
        for out in (one, two)
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)


def keys_bias_removed(name, tensor):
    """
    Take the keys' bias out.

    It adds the same to all scores of a query, so its true gradient is zero; Adam turns what
    rounding leaves of that into steps of full size, differently in every order of additions.
    """
    tensor = tensor.clone()
    if name.endswith("qkv_proj.bias"):
        tensor[64:128] = 0.0
    return tensor


def test_minutes_end_both_ranks_alike(zygote, forked, text, tmp_path):
    out = tmp_path / "run"
    settings = ("train.steps=100000", "train.minutes=0.05", "train.checkpoint_steps=none")
    process = torchrun(zygote, forked, train_arguments(text, out, *settings, validate=False))
    _, errors = process.communicate(timeout=500)
    assert process.returncode == 0, errors
    assert "ended by minutes" in errors
    assert len(list((out / "checkpoints").glob("step-*"))) == 1


def ranks_of(launcher):
    """Find the processes that the launcher started."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == launcher and b"heedful" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except (OSError, ValueError, IndexError):
            continue
    return sorted(found)


CALLED = """
import sys
import heedful

class Stop(heedful.Callback):
    def on_step(self, figures):
        if figures["step"] == 2:
            self.stop("enough")

source, target, valid_source, valid_target, out = sys.argv[1:]
settings = {"train.steps": 9, "train.validate_steps": 2, "search.max_length": 5,
            "data.vocabulary_size": 400, "train.batch_tokens": 256,
            "train.precision": "fp32", "train.device": "cpu"}
result = heedful.train("tiny", source=source, target=target, valid_source=valid_source,
                       valid_target=valid_target, out=out, settings=settings,
                       quiet=True, callbacks=[Stop()])
best = [entry["step"] for entry in result.best]
print(f"{result.reason} at {result.step}, best at {best}\\n", end="", flush=True)
"""


def test_a_callback_ends_both_ranks_in_order(zygote, forked, text, tmp_path):
    sides = (text / f"{name}.{side}" for name in ("train", "valid") for side in ("en", "fr"))
    process = torchrun(zygote, forked, ["-c", CALLED, *sides, tmp_path / "run"])
    output, errors = process.communicate(timeout=500)
    assert process.returncode == 0, errors
    reasons = ("a callback of rank zero", "enough")
    assert sorted(output.splitlines()) == [f"{reason} at 3, best at [2]" for reason in reasons]
    assert (tmp_path / "run" / "checkpoints" / "step-00000003").is_dir()


@pytest.mark.soak
def test_a_rank_that_dies_ends_the_others_with_the_reason(zygote, text, tmp_path):
    out = tmp_path / "run"
    settings = ("train.steps=100000", "train.checkpoint_steps=5", "train.micro_batch_tokens=300")
    process = torchrun(zygote, FROM_NOTHING, train_arguments(text, out, *settings, validate=False))
    try:
        while not (out / "checkpoints" / "step-00000005").is_dir():
            assert process.poll() is None
            time.sleep(0.05)
        first, second = ranks_of(process.pid)
        os.kill(second, signal.SIGKILL)
        _, errors = process.communicate(timeout=500)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode != 0
    assert not Path("/proc", str(first)).exists()
    assert "another process of this run is gone" in errors
    steps = sorted((out / "checkpoints").glob("step-*"))
    assert steps
