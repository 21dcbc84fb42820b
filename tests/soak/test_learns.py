"""The model's other readings learn what tests/learning/test_learns.py has the paper's learn."""

import pytest

from tests.learning.test_learns import learn_to_reverse, task
from tests.support.families import texts_are_here

__all__ = ["task"]  # a fixture

ONE_LAYER = ("model.encoder_layers=1", "model.decoder_layers=1")
READINGS = {
    "t2t": (
        "model.positions=halves",
        "model.decoder_start=zero",
        "train.smoothing_target=others",
        "search.eos_candidates=twice",
        *ONE_LAYER,
    ),
    "pre-norm": (
        "model.norm=pre",
        "model.tie_embeddings=output",
        *ONE_LAYER,
    ),
    "additive": ("model.attention.score=additive", *ONE_LAYER),
    "window": ("model.attention.window=4", *ONE_LAYER),
    "convolution": (
        "model.attention.encoder=convolution",
        "model.attention.window=3",
        "train.steps=700",  # with 300 some machines stay just below
        *ONE_LAYER,
    ),
    "fastformer": (
        "model.attention.encoder=fastformer",
        "model.attention.decoder=fastformer-linear",
        *ONE_LAYER,
    ),
}


@pytest.mark.parametrize("reading", [n for n, texts in READINGS.items() if texts_are_here(texts)])
def test_reversing_letters_is_learned(heedful_cli, task, tmp_path, reading):
    learn_to_reverse(heedful_cli, task, tmp_path / "run", *READINGS[reading])
