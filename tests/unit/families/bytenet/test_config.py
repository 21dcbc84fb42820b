"""The table of ByteNet's settings: what acts, what is printed, what is refused."""

import tomllib

import pytest

from heedful.config.load import load_config, to_toml
from heedful.errors import SettingError
from heedful.families.bytenet.config import ByteNetConfig

BOTH = ["model.encoder=bytenet", "model.decoder=bytenet"]


def printed(*settings):
    return tomllib.loads(to_toml(load_config("small", list(settings))))["model"]


def test_others_print_no_table_of_it():
    assert "bytenet" not in printed()


@pytest.mark.family("recurrent")
def test_a_recurrent_model_prints_no_table_of_it():
    assert "bytenet" not in printed(
        "model.encoder=recurrent", "model.decoder=recurrent", "model.recurrent.score=none"
    )


def test_it_prints_what_acts():
    model = printed(*BOTH)
    assert not {"heads", "d_ff", "positions", "norm", "recurrent"} & model.keys()
    assert {"d_model", "encoder_layers", "dropout"} <= model.keys()
    assert model["bytenet"].keys() == ByteNetConfig.model_fields.keys()


def test_each_side_prints_its_own():
    encoder = printed("model.encoder=bytenet")
    assert {"heads", "decoder_heads"} <= encoder.keys() and "encoder_heads" not in encoder
    assert "encoder_kernel" in encoder["bytenet"] and "join" not in encoder["bytenet"]
    decoder = printed("model.decoder=bytenet")["bytenet"]
    assert {"join", "unfolding_factor", "decoder_kernel"} <= decoder.keys()
    assert "encoder_kernel" not in decoder


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["model.bytenet.max_dilation=8"], "`model.bytenet.max_dilation` applies only if"),
        ([*BOTH, "model.heads=4"], "`model.heads` applies only if"),
        ([*BOTH, "model.scale_embeddings=false"], "`model.scale_embeddings` applies only if"),
        (
            ["model.encoder=bytenet", "model.bytenet.join=summed"],
            "`model.bytenet.join` applies only if `model.decoder` is bytenet",
        ),
        ([*BOTH, "model.bytenet.unfolding_factor=0.9"], "unfolding_factor"),
        ([*BOTH, "model.bytenet.unfolding_factor=nan"], "unfolding_factor"),
        ([*BOTH, "model.bytenet.unfolding_offset=-1"], "unfolding_offset"),
        ([*BOTH, "model.bytenet.kernel=3"], "model.bytenet.kernel"),
    ],
)
def test_what_does_not_act_is_refused(settings, words):
    with pytest.raises(SettingError) as caught:
        load_config("small", settings)
    assert words in str(caught.value)


def test_it_says_why_it_does_not_attend():
    model = load_config("small", [*BOTH]).model
    assert (model.no_attention, model.cross_attention) == ("`model.decoder` is bytenet", (0, 0))
    assert load_config("small", ["model.encoder=bytenet"]).model.no_attention == ""
