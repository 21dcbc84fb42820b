"""Batch norm, and Transformers that lack a part for teaching, by the commands of every model."""

import pytest
import safetensors.torch

from tests.support.commands import not_exported, refused, resumes_alike, train_arguments

pytestmark = pytest.mark.family("batch_norm")

SETTINGS = (
    "model.norm_kind=batch",
    "train.precision=fp32",
    "train.steps=6",
    "train.batch_tokens=256",
    "train.checkpoint_steps=3",
    "train.validate_steps=none",
    "train.ema_decay=0.5",
)
AVERAGE = "encoder.layers.0.self_residual.norm.running_mean"


@pytest.fixture(scope="module")
def run(heedful_cli, text, tmp_path_factory):
    out = tmp_path_factory.mktemp("batch-norm") / "run"
    done = heedful_cli(*train_arguments(text, out, *SETTINGS))
    assert done.returncode == 0, done.stderr
    assert "batch norm: mean and variance come from each micro-batch" in done.stderr
    return out


def weights(folder):
    return safetensors.torch.load_file(folder / "model.safetensors")


def test_a_resumed_run_has_the_same_bytes(heedful_cli, text, run, tmp_path):
    resumes_alike(heedful_cli, text, run, tmp_path / "again", SETTINGS, 3, 6)


def test_running_averages_are_saved_averaged_and_inherited(heedful_cli, text, run, tmp_path):
    checkpoints = [weights(folder)[AVERAGE] for folder in sorted((run / "checkpoints").iterdir())]
    assert len(checkpoints) == 2 and not checkpoints[0].equal(checkpoints[1])
    assert heedful_cli("average", run).returncode == 0
    mean = sum(checkpoints) / 2
    assert (weights(run / "average")[AVERAGE] - mean).abs().max() < 1e-6
    again = tmp_path / "tuned"
    arguments = train_arguments(text, again, "train.steps=1", "train.ema_decay=none")
    done = heedful_cli(*arguments, "--finetune-from", run, "--finetune-weights", "average")
    assert done.returncode == 0, done.stderr
    found = weights(again / "checkpoints" / "step-00000001")[AVERAGE]
    assert 0 < (found - mean).abs().max() < 0.2 * mean.abs().max() + 0.1


def test_it_translates_in_every_precision(heedful_cli, run):
    for precision in ("fp32", "bf16", "int8"):
        done = heedful_cli(
            "translate", run, "--precision", precision, "--max-length", "5", stdin="a dog\n"
        )
        assert done.returncode == 0 and done.stdout.count("\n") == 1, done.stderr


def test_no_format_can_express_it(run, tmp_path):
    not_exported(run, tmp_path, "`model.norm_kind` is batch")


@pytest.mark.parametrize("setting", ["residuals", "causal_mask"])
def test_a_model_that_lacks_a_part_trains_and_translates(heedful_cli, text, tmp_path, setting):
    out = tmp_path / "run"
    lacking = (f"model.{setting}=false", "train.steps=2", "train.validate_steps=2")
    lacking += ("train.batch_tokens=256", "search.max_length=5")
    done = heedful_cli(*train_arguments(text, out, *lacking))
    assert done.returncode == 0, done.stderr
    done = heedful_cli("translate", out, "--max-length", "5", stdin="a dog\n")
    assert done.returncode == 0, done.stderr
    done = heedful_cli("export", out, tmp_path / "onnx", "--format", "onnx")
    refused(done, f"`model.{setting}` is false")


def test_a_norm_s_settings_act_only_if_there_is_one(heedful_cli, text, tmp_path):
    arguments = train_arguments(text, tmp_path / "run", "model.norm_kind=none", "model.norm=pre")
    refused(heedful_cli(*arguments), "`model.norm` applies only if `model.norm_kind` is not none")
