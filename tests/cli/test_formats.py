"""Run folders of every format that there has been are read; one from before is refused."""

import json
import shutil
from pathlib import Path

import pytest

from heedful.runs.run import _FORMAT, _LAST_READER

FORMATS = Path(__file__).parents[1] / "formats"
SETTINGS = (
    *("train.precision=fp32", "train.threads=1", "model.d_model=16", "model.d_ff=16"),
    *("model.heads=2", "model.encoder_layers=1", "model.decoder_layers=1", "train.warmup=10"),
    *("data.vocabulary_size=90", "train.batch_tokens=256", "train.checkpoint_steps=6"),
)
# Of the first two pairs, computed when the folder of the format was written.
SCORES = {"1": [-59.796692, -59.539968]}


@pytest.fixture(params=sorted(SCORES))
def folder(request, tmp_path):
    return shutil.copytree(FORMATS / request.param, tmp_path / request.param)


def test_every_format_has_a_folder():
    assert sorted(path.name for path in FORMATS.iterdir()) == sorted(SCORES)
    assert sorted(SCORES) == [str(number) for number in range(1, _FORMAT + 1)]


def test_its_model_gives_the_same_probabilities(heedful_cli, folder):
    for language in ("en", "fr"):
        lines = (folder / f"train.{language}").read_text("utf-8").splitlines(keepends=True)
        (folder / f"two.{language}").write_text("".join(lines[:2]), "utf-8")
    pairs = ("--source", folder / "two.en", "--target", folder / "two.fr")
    done = heedful_cli("score", folder / "run", *pairs, "--precision", "fp32")
    assert done.returncode == 0, done.stderr
    assert list(map(float, done.stdout.split())) == pytest.approx(SCORES[folder.name], abs=1e-3)


def test_its_training_is_resumed(heedful_cli, folder):
    text = ("--source", folder / "train.en", "--target", folder / "train.fr")
    settings = [part for setting in (*SETTINGS, "train.steps=8") for part in ("--set", setting)]
    resume = ("--out", folder / "run", "--resume", "--allow-inexact-resume")
    done = heedful_cli("train", "tiny", *text, *settings, *resume, "--device", "cpu")
    assert done.returncode == 0, done.stderr
    assert (folder / "run" / "checkpoints" / "step-00000008").is_dir()


def test_a_run_from_before_the_formats_is_refused_in_one_sentence(heedful_cli, folder):
    file = folder / "run" / "config.json"
    config = json.loads(file.read_text("utf-8"))
    config["settings"]["model"]["architecture"] = config["settings"]["model"].pop("encoder")
    file.write_text(json.dumps(config), "utf-8")
    done = heedful_cli("translate", folder / "run", stdin="the dog\n")
    assert done.returncode == 2
    assert f"heedful's commit {_LAST_READER} is the last that reads it." in done.stderr
    assert "`model.architecture`" in done.stderr
    assert done.stderr.count("\n") == 1
