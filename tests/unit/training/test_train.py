"""Ten steps of every recurrent recipe: its wiring, narrower and with fewer layers."""

import json
import math

import pytest

from heedful.config.recurrent_recipes import RECURRENT_RECIPES
from heedful.training.train import train
from tests.support.commands import write_text

SMALL = {
    "model.d_model": 16,
    "model.recurrent.hidden_size": 16,
    "data.vocabulary_size": 60,
    "data.subwords": "bpe",
    "data.shared_vocabulary": True,
    "train.steps": 10,
    "train.batch_tokens": 24,
    "train.precision": "fp32",
    "train.device": "cpu",
}
SIZES = {
    "sutskever": {"model.encoder_layers": 2, "model.decoder_layers": 2},
    "luong": {"model.encoder_layers": 2, "model.decoder_layers": 2},
    "gnmt": {"model.encoder_layers": 3, "model.decoder_layers": 3},  # residuals from the third
    "deep-att": {"model.encoder_layers": 3, "model.decoder_layers": 2},
    "envi": {"train.schedule": "constant"},  # a plateau needs validations
    "bahdanau": {"model.recurrent.readout_size": 8},
}


@pytest.fixture(scope="module")
def text(grammar, tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    write_text(folder, sorted(grammar[0], key=lambda pair: len(pair[1]))[:100], "train")
    return folder


@pytest.mark.parametrize("name", [*RECURRENT_RECIPES, "recurrent-small"])
def test_ten_steps_of_a_recurrent_recipe(name, text, tmp_path):
    result = train(
        name,
        source=text / "train.en",
        target=text / "train.fr",
        out=tmp_path / "run",
        settings={**SMALL, **SIZES.get(name, {})},
        quiet=True,
    )
    assert (result.reason, result.step) == ("steps", 10)
    last = json.loads(result.log.read_text().splitlines()[-1])
    assert last["step"] == 10 and math.isfinite(last["loss"])
