"""What does not go together in ByteNet, and what to change."""

import pytest

from heedful.config.load import load_config
from heedful.config.schema import RunConfig
from heedful.errors import SettingError
from heedful.families.bytenet.clashes import bytenet_clashes

BOTH = ["model.encoder=bytenet", "model.decoder=bytenet"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ([*BOTH, "model.bytenet.max_dilation=12"], "must be a power of two, because dilations"),
        ([*BOTH, "model.bytenet.max_dilation=12"], "the nearest are 8 and 16"),
        ([*BOTH, "model.bytenet.encoder_kernel=4"], "must be odd, because it covers both"),
        (
            [
                *BOTH,
                "model.bytenet.encoder_kernel=1",
                "model.bytenet.decoder_kernel=1",
                "model.bytenet.max_dilation=8",
            ],
            "has an effect only with a kernel wider than one position",
        ),
        (
            [*BOTH, "model.d_model=33"],
            "`model.d_model` must be even if `model.bytenet.channels` is none",
        ),
        pytest.param(
            [
                "model.encoder=recurrent",
                "model.decoder=bytenet",
                "model.bytenet.join=summed",
            ],
            "(256), but they are 512 wide; concatenated accepts any width",
            marks=pytest.mark.family("recurrent"),
        ),
    ],
)
def test_what_does_not_fit_is_named(settings, words):
    with pytest.raises(SettingError) as caught:
        load_config("small", settings)
    assert words in str(caught.value)


def test_several_faults_are_named_at_once():
    wrong = ["model.bytenet.max_dilation=3", "model.bytenet.encoder_kernel=2"]
    with pytest.raises(SettingError, match=r"power of two.*must be odd"):
        load_config("small", [*BOTH, *wrong])


def test_an_odd_width_needs_its_channels():
    config = load_config("small", [*BOTH, "model.d_model=33", "model.bytenet.channels=16"])
    assert config.model.bytenet.channels == 16
    assert RunConfig.from_dict(config.to_dict()) == config
    assert bytenet_clashes(config.model, config.model.d_model) == []


def test_guided_attention_is_refused():
    settings = {"model.encoder": "bytenet", "model.decoder": "bytenet"}
    with pytest.raises(
        SettingError, match=r"guides attention .* no such attention \(`model.decoder` is bytenet"
    ):
        RunConfig().with_settings(settings | {"train.guided_attention": 1.0})
