"""A learning rate that is far too high ends the run with a report, not with a ruined checkpoint."""

import json

import safetensors.torch

from tests.support.commands import train_arguments


def test_a_diverging_run_reports_its_batch_and_keeps_its_weights(heedful_cli, text, tmp_path):
    out = tmp_path / "run"
    settings = (
        "train.learning_rate_factor=1e36",
        "train.warmup=1",
        "train.precision=fp32",
        "train.checkpoint_steps=none",
        "train.steps=500",
    )
    done = heedful_cli(*train_arguments(text, out, *settings, validate=False))
    assert done.returncode == 1, done.stderr
    message = done.stderr.strip().splitlines()[-1]
    assert "must be finite numbers" in message
    assert "no step was taken" in message
    assert "Traceback" not in done.stderr
    report = json.loads((out / "log.jsonl").read_text().splitlines()[-1])
    assert report["refused"]["pairs"][0].keys() == {"pair", "source", "target"}
    for checkpoint in (out / "checkpoints").iterdir():
        weights = safetensors.torch.load_file(checkpoint / "model.safetensors")
        assert all(tensor.isfinite().all() for tensor in weights.values())
