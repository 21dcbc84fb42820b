"""The table of recurrent settings: what acts, what is printed, what is refused."""

import tomllib

import pytest

from heedful.config.load import load_config, to_toml
from heedful.config.schema import RunConfig
from heedful.errors import SettingError
from heedful.families.recurrent.config import RecurrentConfig

BOTH = ["model.encoder=recurrent", "model.decoder=recurrent"]


def printed(*settings):
    return tomllib.loads(to_toml(load_config("small", list(settings))))["model"]


def test_a_transformer_prints_no_recurrent_table():
    assert "recurrent" not in printed()
    assert {"heads", "positions", "norm"} <= printed().keys()


def test_a_recurrent_model_prints_what_acts():
    model = printed(*BOTH)
    assert not {"heads", "d_ff", "positions", "norm", "scale_embeddings"} & model.keys()
    assert {"cell", "direction", "score", "query", "attention_size"} <= model["recurrent"].keys()
    silent = printed(
        *BOTH,
        *("model.recurrent.score=none", "model.recurrent.feed=none"),
        "model.recurrent.readout=state",
    )["recurrent"]
    assert not {"query", "attention_size", "feed_layers", "readout_size"} & silent.keys()


def test_each_side_prints_its_own():
    mixed = printed("model.decoder=recurrent", "model.recurrent.start=mean")
    assert {"heads", "encoder_heads", "recurrent"} <= mixed.keys()
    assert "decoder_heads" not in mixed and "direction" not in mixed["recurrent"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["model.recurrent.cell=gru"], "`model.recurrent.cell` applies only if"),
        ([*BOTH, "model.heads=4"], "`model.heads` applies only if `model.encoder` or `model"),
        (
            [*BOTH, "model.recurrent.score=general", "model.recurrent.attention_size=9"],
            "`model.recurrent.attention_size` applies only if `model.recurrent.score` is additive",
        ),
        (
            [*BOTH, "model.recurrent.cell=gru", "model.recurrent.forget_bias=2"],
            "forget_bias` applies",
        ),
    ],
)
def test_what_does_not_act_is_refused(settings, words):
    with pytest.raises(SettingError) as caught:
        load_config("paper-base", settings)
    assert words in str(caught.value)


def test_settings_from_python_may_be_nested():
    nested = {
        "model": {"encoder": "recurrent", "decoder": "recurrent", "recurrent": {"cell": "gru"}}
    }
    config = load_config("small", nested)
    assert config.model.recurrent == RecurrentConfig(cell="gru")
    assert RunConfig.from_dict(config.to_dict()) == config


def test_a_decoder_attends_or_says_why_not():
    model = load_config("small", [*BOTH]).model
    assert (model.no_attention, model.cross_attention) == ("", (1, 1))
    silent = load_config("small", [*BOTH, "model.recurrent.score=none"]).model
    assert silent.no_attention == "`model.recurrent.score` is none"
    assert silent.cross_attention == (0, 0)
    assert load_config("small").model.no_attention == ""
