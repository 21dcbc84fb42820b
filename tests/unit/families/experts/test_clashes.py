import pytest

from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.families.experts.clashes import experts_clashes

DECODER = [
    "model.encoder=recurrent",
    "model.decoder=recurrent",
    "model.recurrent.query=previous",
    "model.recurrent.feed=context",
    "model.recurrent.readout=state-context",
    "model.tie_embeddings=none",
]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["count=4", "per_token=5"], "must be at most the number of experts (4), but got 5"),
        (["count=4", "per_token=1"], "is always 1 and learns nothing"),
        (["count=9", "groups=2"], "must divide `model.experts.count` (9), but got 2"),
        (
            ["count=12", "groups=6", "per_token=3"],
            "at most the smaller of the number of groups and the number of experts in a group (2)",
        ),
        (["count=4", "encoder_layers=3"], "must be layers from 1 to 2 (`model.encoder_layers`)"),
        (["count=4", "encoder_layers=none", "decoder_layers=none"], "must be none if no layer"),
    ],
)
def test_what_does_not_fit_is_named(settings, words):
    with pytest.raises(SettingError) as caught:
        load_config("tiny", [f"model.experts.{setting}" for setting in settings])
    assert words in str(caught.value)


def test_networks_are_gated_only_where_a_layer_has_no_mixture():
    gated = ["model.gated=true", "model.experts.count=4"]
    with pytest.raises(SettingError, match=r"`model.gated` must be false if all layers have"):
        load_config("tiny", gated)
    assert load_config("tiny", [*gated, "model.experts.encoder_layers=2"]).model.gated


@pytest.mark.parametrize("settings", [["count=1", "per_token=1"], ["count=6", "groups=3"]])
def test_what_fits_has_no_clash(settings):
    config = load_config("tiny", [f"model.experts.{setting}" for setting in settings])
    assert [*experts_clashes(config.model)] == []


@pytest.mark.family("recurrent")
def test_recurrent_decoders_have_mixtures_outside_of_what_is_fed_back():
    count = "model.experts.count=4"
    load_config("tiny", [*DECODER, count])
    for setting in ("query=current", "feed_layers=all"):
        with pytest.raises(SettingError, match="need recurrent decoder layers without feedback"):
            load_config("tiny", [*DECODER, f"model.recurrent.{setting}", count])
    current = "model.recurrent.query=current"
    load_config("tiny", [*DECODER, current, count, "model.experts.decoder_layers=none"])
    blind = ["model.recurrent.score=none", "model.recurrent.query=current"]
    blind += ["model.recurrent.readout=state", "model.recurrent.start=mean"]
    load_config("tiny", [*DECODER, *blind, "model.recurrent.feed=none", count])
    with pytest.raises(SettingError, match=r"feedback: set `model\.recurrent\.feed` to none, or"):
        load_config("tiny", [*DECODER, *blind, "model.recurrent.feed=readout", count])
    fast = ["model.recurrent.fast_forward=true", "model.recurrent.direction=forward"]
    with pytest.raises(SettingError, match="fast_forward` must be false with mixtures"):
        load_config("tiny", [*DECODER, *fast, count])


@pytest.mark.family("recurrent")
def test_without_attention_nothing_is_fed_back():
    chosen = ["model.encoder=recurrent", "model.decoder=recurrent", "model.tie_embeddings=none"]
    chosen += [f"model.recurrent.{text}" for text in ("score=none", "feed=none", "readout=state")]
    load_config("tiny", [*chosen, "model.experts.count=4"])
