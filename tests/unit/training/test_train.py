"""Ten steps of every recipe of a family before the paper, narrower and with fewer layers."""

import json
import math

import pytest
import torch

from heedful.config.train import TrainConfig
from heedful.errors import SettingError
from heedful.training.train import require_sums_in_order, train
from tests.support.commands import write_text
from tests.support.families import recipes_of

SMALL = {
    "model.d_model": 16,
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
NARROW = {"model.recurrent.hidden_size": 16}


@pytest.fixture(scope="module")
def text(grammar, tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    write_text(folder, sorted(grammar[0], key=lambda pair: len(pair[1]))[:100], "train")
    return folder


@pytest.mark.family("recurrent")
@pytest.mark.parametrize("name", recipes_of("recurrent"))
def test_ten_steps_of_a_recurrent_recipe(name, text, tmp_path):
    ten_steps(name, {**SMALL, **NARROW, **SIZES.get(name, {})}, text, tmp_path)


@pytest.mark.family("bytenet")
@pytest.mark.parametrize("name", recipes_of("bytenet"))
def test_ten_steps_of_bytenet_with_all_its_blocks(name, text, tmp_path):
    ten_steps(name, {**SMALL, "data.subwords": "character"}, text, tmp_path)


@pytest.mark.family("experts")
@pytest.mark.parametrize("name", recipes_of("experts"))
def test_ten_steps_of_a_mixture_of_experts(name, text, tmp_path):
    shape = {"model.experts.d_ff": 8, "data.subwords": "bpe"}
    if name != "moe-small":
        shape["model.recurrent.hidden_size"] = 20
        shape["model.recurrent.projection_size"] = 16
        shape["model.recurrent.attention_size"] = 8
    if name == "moe-2048":
        shape |= {"model.experts.count": 8, "model.experts.groups": 4}
    ten_steps(name, {**SMALL, "model.d_model": 16, **shape}, text, tmp_path)


def ten_steps(name, settings, text, tmp_path):
    result = train(
        name,
        source=text / "train.en",
        target=text / "train.fr",
        out=tmp_path / "run",
        settings=settings,
        quiet=True,
    )
    assert (result.reason, result.step) == ("steps", 10)
    last = json.loads(result.log.read_text().splitlines()[-1])
    assert last["step"] == 10 and math.isfinite(last["loss"])


LAYERS = {"convs2s-en-de": "2x(8,3) (16,3) (24,1)", "convs2s-en-fr": "(8,3) (12,3) (16,3) (24,1)"}


@pytest.mark.family("convs2s")
@pytest.mark.parametrize("name", recipes_of("convs2s"))
def test_ten_steps_of_a_convolutional_recipe(name, text, tmp_path):
    layers = LAYERS.get(name, "2x(8,3)")
    shape = {f"model.convs2s.{side}_layers": layers for side in ("encoder", "decoder")}
    if name in LAYERS:
        shape["model.convs2s.out_embed_dim"] = 12
    if name != "convolutional-small":
        shape["train.schedule"] = "constant"  # a plateau needs validations
    ten_steps(name, {**SMALL, **shape}, text, tmp_path)


def test_equal_bytes_of_a_gpu_are_for_the_likelihood():
    gpu, processor = torch.device("cuda"), torch.device("cpu")
    wanted = {"deterministic": True, "objective": "reward"}
    for device, settings in (
        (processor, TrainConfig(**wanted)),
        (gpu, TrainConfig(**{**wanted, "deterministic": False})),
        (gpu, TrainConfig(**{**wanted, "objective": "likelihood"})),
    ):
        require_sums_in_order(device, settings)
    with pytest.raises(SettingError, match=r"objective` reward"):
        require_sums_in_order(gpu, TrainConfig(**wanted))
