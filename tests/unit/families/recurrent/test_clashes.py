"""Settings of recurrent models that do not fit are refused together, each with what to change."""

import pytest

from heedful.config.load import load_config
from heedful.errors import SettingError

BOTH = ["model.encoder=recurrent", "model.decoder=recurrent"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            ["score=none", "readout=state-context"],
            "`model.recurrent.readout` must be state, attentional or maxout without attention",
        ),
        (
            ["score=none", "readout=state", "feed=none", "hidden_size=9"],
            "but it is 9 wide; change `model.recurrent.readout` to attentional or maxout",
        ),
        (
            ["cell=gru", "projection_size=5"],
            "needs LSTMs without `model.recurrent.fast_forward`, but got 5 with gru",
        ),
        (["projection_size=512", "start=zero"], "must be less than the width of the states of the"),
        (["projection_size=8"], "start` must be zero or final if"),
        (["residual_from=1"], "but they are 1024 wide"),
        (["score=none", "readout=state"], "`model.recurrent.feed` must be none without attention"),
        (["readout=state"], "`model.recurrent.feed` must be context"),
        (["feed=none", "feed_layers=all"], "`model.recurrent.feed_layers` must be first"),
        (["score=dot"], "are 1024 and 512 wide"),
        (["readout_size=9"], "needs a readout as wide as `model.d_model` (512), but it is 9 wide"),
        (["direction=forward", "start=backward"], "top layer reads in both directions"),
        (
            ["start=last", "encoder_hidden_size=9"],
            "but they are 512 and 9 wide",
        ),
        (["score=none", "start=zero"], "would ignore the source"),
        (["fast_forward=true"], "to be forward or interleaved"),
        (["direction=first-bidirectional", "residual_from=2"], "must be at least 3"),
        (["residual_from=7"], "at most the number of recurrent layers (6)"),
    ],
)
def test_what_does_not_fit_is_named(settings, words):
    given = [f"model.recurrent.{text}" for text in settings]
    with pytest.raises(SettingError) as caught:
        load_config("paper-base", [*BOTH, *given])
    assert words in str(caught.value)


def test_families_that_do_not_meet_are_refused():
    clash = "start` must be zero or mean if `model.decoder` is recurrent and `model.encoder` is tra"
    with pytest.raises(SettingError, match=clash):
        load_config("paper-base", ["model.decoder=recurrent"])
    with pytest.raises(SettingError, match=r"as wide as `model.d_model` \(512\) for a Transformer"):
        load_config("paper-base", ["model.encoder=recurrent"])
    mixed = ["model.encoder=recurrent", "model.recurrent.encoder_hidden_size=256"]
    assert load_config("paper-base", mixed).model.encoder == "recurrent"


@pytest.mark.parametrize(
    "positions",
    [pytest.param(name, marks=pytest.mark.family(name)) for name in ("shaw", "rotary")],
)
def test_relative_positions_act_in_the_encoder_alone(positions):
    # the decoder's first state is refused, not the positions
    given = [f"model.positions={positions}", "model.decoder=recurrent"]
    with pytest.raises(SettingError, match=r"`model\.decoder` is recurrent") as caught:
        load_config("tiny", given)
    assert "model.positions" not in str(caught.value)
    config = load_config("tiny", [*given, "model.recurrent.start=mean"])
    assert config.model.positions == positions


def test_final_states_need_as_many_layers():
    given = [*BOTH, "model.recurrent.start=final", "model.decoder_layers=2"]
    with pytest.raises(SettingError, match="there are 6 and 2"):
        load_config("paper-base", given)


def test_several_faults_are_named_at_once():
    given = [*BOTH, "model.recurrent.score=dot", "model.recurrent.readout_size=9"]
    with pytest.raises(SettingError, match=r"score` = dot needs .*; `model.tie_embeddings` = all"):
        load_config("paper-base", given)


@pytest.mark.family("pooled")
def test_one_state_of_the_encoder_leaves_no_choice_of_the_query():
    settings = ["model.encoder=average", "model.decoder=recurrent", "model.recurrent.start=mean"]
    load_config("small", settings)
    with pytest.raises(SettingError, match=r"`model.encoder` is average, whose positions"):
        load_config("small", [*settings, "model.recurrent.query=previous"])
