"""A small text and a run that was trained on it by the command line, for all tests here."""

from pathlib import Path

import pytest

from tests.support.commands import train_arguments, write_text


@pytest.fixture(scope="session")
def text(grammar, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    pairs, held_out = grammar
    write_text(folder, pairs, "train")
    write_text(folder, held_out, "valid")
    return folder


@pytest.fixture(scope="session")
def trained(heedful_cli, text, tmp_path_factory) -> Path:
    """The folder of a short run in fp32."""
    out = tmp_path_factory.mktemp("run") / "run"
    done = heedful_cli(*train_arguments(text, out, "train.precision=fp32"))
    assert done.returncode == 0, done.stderr
    return out
