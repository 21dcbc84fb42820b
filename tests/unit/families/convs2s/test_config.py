"""The settings of ConvS2S."""

import pytest

from heedful.config.load import load_config, to_toml
from heedful.config.model import ModelConfig
from heedful.errors import SettingError
from heedful.families.convs2s.config import attending_layers, layers_of

BOTH = ["model.encoder=convs2s", "model.decoder=convs2s"]


def test_shapes_are_written_short():
    assert layers_of("2x(512,3) (1024,1,2)") == [(512, 3, 1), (512, 3, 1), (1024, 1, 2)]


def test_layers_that_attend_are_named_or_numbered():
    assert attending_layers("all", 3) == [1, 2, 3]
    assert attending_layers("first", 3) == [1]
    assert attending_layers("last", 3) == [3]
    assert attending_layers("3 1", 3) == [1, 3]


@pytest.mark.parametrize("text", ["", "3", "(512)", "0x(512,3)", "(512,0)", "(512,3)(512,3)"])
def test_a_shape_of_another_form_is_refused(text):
    with pytest.raises(SettingError, match=r"must be groups of layers such as 9x\(512,3\)"):
        load_config("tiny", [*BOTH, f"model.convs2s.encoder_layers={text}"])


@pytest.mark.parametrize(
    "text",
    ["1001x(8,3)", "999x(8,3) 2x(8,3)", "999999999999x(8,3)", " ".join(600 * ["999999x(8,3)"])],
    ids=["one part", "two parts", "a long number", "many parts"],
)
def test_too_many_layers_are_refused_before_they_are_listed(text):
    with pytest.raises(SettingError, match="must have at most 1000 layers, but"):
        load_config("tiny", [*BOTH, f"model.convs2s.encoder_layers={text}"])


def test_attention_of_another_form_is_refused():
    with pytest.raises(SettingError, match="must be all, first, last, or layer numbers"):
        load_config("tiny", [*BOTH, "model.convs2s.attention=none"])


def test_its_layers_stand_in_its_own_table():
    with pytest.raises(SettingError, match=r"`model.encoder_layers` applies only if"):
        load_config("tiny", [*BOTH, "model.encoder_layers=9"])
    printed = to_toml(load_config("tiny", BOTH))
    assert 'encoder_layers = "20x(512,3)"' in printed
    assert "heads" not in printed and "scale_embeddings" not in printed


def test_each_layer_that_attends_is_a_layer_of_attention():
    three = {"decoder_layers": "3x(512,3)", "attention": "1 3"}
    assert ModelConfig(decoder="convs2s", convs2s=three).cross_attention == (2, 1)


@pytest.mark.family("recurrent")
def test_positions_act_for_it_and_may_be_none():
    assert load_config("tiny", [*BOTH, "model.positions=none"]).model.positions == "none"
    assert load_config("tiny", ["model.positions=none"]).model.positions == "none"
    recurrent = ["model.encoder=recurrent", "model.decoder=recurrent", "model.positions=learned"]
    with pytest.raises(SettingError, match=r"`model.positions` applies only if"):
        load_config("tiny", recurrent)
