"""A run folder whose config.json has the names of settings from before the first release."""

import json
import shutil

import pytest

from heedful.runs.checkpoint import STATE, _state_checksum
from tests.support.commands import train_arguments

# As commit 81d1756 wrote it for the run of the fixture `trained`.
SETTINGS = json.loads("""
{"recipe": "tiny", "reading": "own",
"model": {"architecture": "transformer", "d_model": 64, "d_ff": 128, "heads": 4, "d_k": null,
"d_v": null, "encoder_layers": 2, "decoder_layers": 2, "encoder_heads": null,
"decoder_heads": null, "encoder_d_ff": null, "decoder_d_ff": null, "activation": "relu",
"dropout": 0.1, "norm": "post", "encoder_norm": null, "decoder_norm": null,
"norm_epsilon": 1e-06, "positions": "interleaved", "first_position": 0, "tie": "all",
"projection_bias": true, "output_bias": false, "scale_embeddings": true, "start": "symbol",
"source_end": true},
"data": {"source_language": "en", "target_language": "fr", "vocabulary_size": 400,
"vocabulary_multiple": 8, "subwords": "bpe", "sampling": 0.0, "vocabulary_threshold": 0,
"shared_vocabulary": true, "max_length": 64, "max_ratio": null, "script_share": null,
"drop_duplicates": false, "mixing_temperature": 1.0},
"train": {"steps": 24, "minutes": null, "batch_tokens": 1024, "batch_counting": "real",
"block_tokens": null, "micro_batch_tokens": null, "warmup": 400, "learning_rate_factor": 1.0,
"beta1": 0.9, "beta2": 0.98, "epsilon": 1e-09, "label_smoothing": 0.1,
"smoothing_form": "uniform", "seed": 1, "precision": "fp32", "device": "cpu", "threads": 0,
"checkpoint_steps": 8, "checkpoint_minutes": null, "keep_last": 5, "keep_best": 1,
"validate_steps": 12, "validation_samples": 3, "best_by": "bleu", "patience": null, "clip": null,
"weight_decay": 0.0, "average_decay": null},
"search": {"beam": 4, "length_penalty": "gnmt:0.6", "finish_among": "beam", "stop": "best",
"at_limit": "cut", "renormalise": false, "forbidden": "", "min_length": 0,
"max_length": "input+10", "max_source": 1024}}
""")


@pytest.fixture
def old_run(trained, tmp_path):
    """The run as the older version would have left it: settings and checkpoints."""
    folder = shutil.copytree(trained, tmp_path / "old")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"settings": SETTINGS}), "utf-8")
    flat = {key: value for key, value in SETTINGS.items() if isinstance(value, str)}
    for table in ("model", "data", "train", "search"):
        flat |= {f"{table}.{name}": value for name, value in SETTINGS[table].items()}
    for checkpoint in (folder / "checkpoints").iterdir():
        state = json.loads((checkpoint / STATE).read_text("utf-8")) | {"settings": flat}
        state["sha256"][STATE] = _state_checksum(state)
        (checkpoint / STATE).write_text(json.dumps(state), "utf-8")
    return folder


def test_it_opens_translates_and_resumes_to_the_same_bytes(
    heedful_cli, text, trained, old_run, tmp_path
):
    said = [
        heedful_cli("translate", run, "--precision", "fp32", stdin="the dog\na cat\n")
        for run in (old_run, trained)
    ]
    assert said[0].returncode == 0, said[0].stderr
    assert said[0].stdout == said[1].stdout
    new_run = shutil.copytree(trained, tmp_path / "new")
    for run in (old_run, new_run):
        settings = ("train.precision=fp32", "train.steps=30")
        done = heedful_cli(*train_arguments(text, run, *settings), "--resume")
        assert done.returncode == 0, done.stderr
    for name in ("model.safetensors", "training.safetensors"):
        weights = [
            (run / "checkpoints" / "step-00000030" / name).read_bytes()
            for run in (old_run, new_run)
        ]
        assert weights[0] == weights[1]
    for run in (old_run, new_run):
        config = json.loads((run / "config.json").read_text("utf-8"))
        assert config["settings"]["train"]["clip_norm"] is None
        assert "clip" not in config["settings"]["train"]
