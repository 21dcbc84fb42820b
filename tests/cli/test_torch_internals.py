"""The commands where torch has none of the internal functions that heedful uses."""

import pytest
import safetensors.torch
import torch

from tests.support.commands import train_arguments

PROGRAM = """
from heedful.kernels import torch_internals
torch_internals._resolve = lambda name: None
torch_internals.internal.cache_clear()
from heedful.cli.main import main
main()
"""
SENTENCES = "the big red dog\nmy queen did not eat the oranges\n\na cat\n"


# Rounding alone makes a whole step of Adam where a gradient is 0, unless epsilon is larger.
@pytest.mark.parametrize(
    "settings", [("train.epsilon=0.01",), ("model.norm=pre", "train.optimizer=sgd")], ids=str
)
def test_training_ends_at_the_same_weights(heedful_cli, text, tmp_path, settings):
    settings = (*settings, "train.precision=fp32", "train.steps=4", "train.ema_decay=0.9")
    # without oneDNN rows keep their padding, so dropout would draw other masks
    choices = (*settings, "model.dropout=0")
    runs = []
    for name, start in (("with", ()), ("without", ("-c", PROGRAM))):
        done = heedful_cli(*start, *train_arguments(text, tmp_path / name, *choices))
        assert done.returncode == 0, done.stderr
        (checkpoint,) = (tmp_path / name / "checkpoints").iterdir()
        runs.append(safetensors.torch.load_file(checkpoint / "model.safetensors"))
    torch.testing.assert_close(runs[1], runs[0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("compiler", ["cc", "no-such-compiler"])
def test_translations_are_the_same(heedful_cli, trained, tmp_path, precision, compiler):
    env = {"CC": compiler, "XDG_CACHE_HOME": str(tmp_path)} if compiler != "cc" else {}
    how = ("translate", trained, "--precision", precision, "--scores")
    runs = [heedful_cli(*start, *how, stdin=SENTENCES, env=env) for start in ((), ("-c", PROGRAM))]
    assert [done.returncode for done in runs] == [0, 0], runs[1].stderr
    rows = [[line.split("\t") for line in done.stdout.splitlines()] for done in runs]
    if precision != "bf16":  # whose rounding decides where two words are as likely
        assert [text for _, text in rows[1]] == [text for _, text in rows[0]]
    scores = [[float(score) for score, _ in table] for table in rows]
    tolerance = 0.05 if precision == "bf16" else 1e-5
    if precision == "int8" and compiler != "cc":
        # without AVX-512, torch rounds a state between two numbers of 8 bits to the other one
        tolerance = 2e-3
    assert scores[1] == pytest.approx(scores[0], rel=tolerance)
