"""Settings of attention: refused where they do not act, and named where they differ."""

import pytest

from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.settings.attention import AttentionSettings

RECURRENT = ["model.encoder=recurrent", "model.decoder=recurrent"]


def test_what_differs_from_the_paper_is_listed():
    assert AttentionSettings().changed() == []
    assert AttentionSettings(score="additive").changed() == [("model.attention.score", "additive")]


@pytest.mark.family("recurrent")
@pytest.mark.parametrize("setting", ["score=additive", "window=3"])
def test_it_acts_in_transformers_alone(setting):
    load_config("tiny", [f"model.attention.{setting}"])
    with pytest.raises(SettingError, match=r"only if `model.encoder` or `model.decoder` is"):
        load_config("tiny", [*RECURRENT, f"model.attention.{setting}"])


def test_a_window_needs_the_mask_that_it_has():
    with pytest.raises(SettingError, match="causal_mask` must be true with it"):
        load_config("tiny", ["model.attention.window=2", "model.causal_mask=false"])
