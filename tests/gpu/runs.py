"""Runs of commands on a GPU."""

import json

from tests.support.commands import train_arguments

STEPS = 150
SETTINGS = (
    f"train.steps={STEPS}",
    "train.warmup=50",
    "train.learning_rate_factor=0.3",
    "train.clip_norm=1",
    "train.checkpoint_steps=50",
    "train.validate_steps=50",
)


def on_gpu(text, out, *settings):
    """The arguments of a training, on the GPU."""
    words = train_arguments(text, out, *SETTINGS, *settings)
    words[words.index("cpu")] = "cuda"
    return words


def ended_well(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def log(run):
    lines = (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def perplexities(run):
    """Those of the validations, in their order."""
    return [line["valid_perplexity"] for line in log(run) if "valid_perplexity" in line]


def bytes_of(run):
    """The weights and moments of all checkpoints, in their order."""
    return [path.read_bytes() for path in sorted(run.glob("checkpoints/*/*.safetensors"))]


def translated(heedful_cli, run, text, device, *options):
    words = ("translate", run, "--input", text / "valid.en", "--device", device, *options)
    return ended_well(heedful_cli(*words)).splitlines()
