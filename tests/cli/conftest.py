"""A small text and a run that was trained on it by the command line, for all tests here."""

from pathlib import Path

import pytest

from heedful.data.grammar import split_pairs

QUICK = (
    "data.vocabulary_size=400",
    "train.steps=24",
    "train.batch_tokens=1024",
    "train.validate_steps=12",
    "train.checkpoint_steps=8",
)


def write_text(folder, pairs, name):
    for side, language in enumerate(("en", "fr")):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"{name}.{language}").write_text(text, encoding="utf-8")


@pytest.fixture(scope="session")
def text(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    pairs, held_out = split_pairs(1500, 40, seed=1)
    write_text(folder, pairs, "train")
    write_text(folder, held_out, "valid")
    return folder


def train_arguments(text, out, *settings, validate=True):
    files = ["--source", text / "train.en", "--target", text / "train.fr"]
    if validate:
        files += ["--valid-source", text / "valid.en", "--valid-target", text / "valid.fr"]
    chosen = [part for setting in (*QUICK, *settings) for part in ("--set", setting)]
    return ["train", "tiny", *files, "--out", out, "--device", "cpu", *chosen]


@pytest.fixture(scope="session")
def trained(heedful_cli, text, tmp_path_factory) -> Path:
    """The folder of a short run in fp32."""
    out = tmp_path_factory.mktemp("run") / "run"
    done = heedful_cli(*train_arguments(text, out, "train.precision=fp32"))
    assert done.returncode == 0, done.stderr
    return out
