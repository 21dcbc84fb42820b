"""Text, arguments and refusals of commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.errors import ExchangeError
from heedful.exchange.convert import export_model
from heedful.exchange.registry import writer_names
from tests.support.weights import assert_same_weights

QUICK = (
    "data.vocabulary_size=400",
    "data.reading=exact",  # what has learned so little repeats itself, and loops would be cut
    "train.steps=24",
    "train.batch_tokens=1024",
    "train.validate_steps=12",
    "train.checkpoint_steps=8",
    "search.max_length=input+10",  # what has learned so little hardly ever ends by itself
)


def write_text(folder, pairs, name):
    for side, language in enumerate(("en", "fr")):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"{name}.{language}").write_text(text, encoding="utf-8")


def train_arguments(text, out, *settings, validate=True):
    files = ["--source", text / "train.en", "--target", text / "train.fr"]
    if validate:
        files += ["--valid-source", text / "valid.en", "--valid-target", text / "valid.fr"]
    chosen = [part for setting in (*QUICK, *settings) for part in ("--set", setting)]
    return ["train", "tiny", *files, "--out", out, "--device", "cpu", *chosen]


def train_run(heedful_cli, text, out, *settings, options=()):
    """Train a short run; return its folder."""
    done = heedful_cli(*train_arguments(text, out, *settings), *options)
    assert done.returncode == 0, done.stderr
    return out


def resumes_alike(heedful_cli, text, whole, again, settings, steps, last):
    """Check that a run that was stopped and resumed has the bytes of the whole one."""
    train_run(heedful_cli, text, again, *settings, f"train.steps={steps}")
    train_run(heedful_cli, text, again, *settings, options=["--resume"])
    assert_same_weights(again, whole, f"step-{last:08}")


def not_exported(run, folder, named):
    """Check that every format refuses a run, by the setting that it cannot express."""
    for kind in writer_names():
        with pytest.raises(ExchangeError) as caught:
            export_model(run, kind, folder / kind)
        toolkit, message = "marian" if kind == "huggingface" else kind, str(caught.value)
        if "class cannot express this model" in message:  # it has the setting, with other values
            assert f"{named.strip('`').partition('`')[0]} must be" in message
        else:
            assert f"{toolkit} cannot express the model in" in message
            assert named in message
        assert not (folder / kind).exists()


def refused(done, *parts, code=2):
    """Check that a command ended in one paragraph with these words and no traceback."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("heedful: ")
    for part in parts:
        assert part in message, message
    return message


def run_shell(zygote, command, folder):
    """Run a line of shell, in which `heedful` is a fork of the zygote."""
    programs = [str(zygote.programs), str(Path(sys.executable).parent), os.environ["PATH"]]
    variables = zygote.environ | {"PATH": os.pathsep.join(programs)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        check=False,
        capture_output=True,
        encoding="utf-8",
        env=variables,
        timeout=500,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
