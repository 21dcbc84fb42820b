"""Settings of attention: refused where they do not act, and named where they differ."""

import pytest

from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.settings.attention import AttentionConfig
from heedful.settings.attention_clashes import attention_clashes

OF_ATTENTION = ("encoder", "decoder", "window", "score")
RECURRENT = ["model.encoder=recurrent", "model.decoder=recurrent"]


def test_the_paper_s_attention_fits():
    assert [*attention_clashes(load_config("paper-base").model)] == []


def test_what_differs_from_the_paper_is_listed():
    assert AttentionConfig().changed() == []
    assert AttentionConfig(score="additive").changed() == [("model.attention.score", "additive")]


@pytest.mark.parametrize("setting", ["score=additive", "window=3"])
def test_it_acts_in_transformers_alone(setting):
    load_config("tiny", [f"model.attention.{setting}"])
    with pytest.raises(SettingError, match=r"acts only if `model.encoder` or `model.decoder` is"):
        load_config("tiny", [*RECURRENT, f"model.attention.{setting}"])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["encoder=convolution"], "`model.attention.window` must be the width of the convolution"),
        (["encoder=fastformer", "d_k=5"], "`model.d_k` must be none"),
        (["encoder=convolution", "window=3", "encoder_heads=4"], "`model.encoder_heads` acts only"),
        (["decoder=fastformer-linear", "causal_mask=false"], "which never reads what follows"),
        (
            ["encoder=fastformer", "decoder=fastformer-linear", "window=2"],
            "`model.attention.window` acts only if",
        ),
    ],
)
def test_what_does_not_fit_is_named(settings, words):
    given = [
        f"model.attention.{text}" if text.partition("=")[0] in OF_ATTENTION else f"model.{text}"
        for text in settings
    ]
    with pytest.raises(SettingError) as caught:
        load_config("tiny", given)
    assert words in str(caught.value)


def test_scores_need_attention():
    chosen = ["model.decoder=recurrent", "model.recurrent.start=mean"]
    chosen += ["model.attention.encoder=fastformer"]
    load_config("tiny", chosen)
    with pytest.raises(SettingError, match="score` acts only if"):
        load_config("tiny", [*chosen, "model.attention.score=additive"])


def test_a_window_needs_the_mask_that_it_has():
    with pytest.raises(SettingError, match="causal_mask` must be true with it"):
        load_config("tiny", ["model.attention.window=2", "model.causal_mask=false"])


@pytest.mark.parametrize("setting", ["heads=4", "d_k=4", "d_v=4", "projection_bias=false"])
def test_a_convolution_before_another_decoder_has_no_heads(setting):
    chosen = ["model.decoder=bytenet", "model.attention.encoder=convolution"]
    # no heads, so nothing has to divide the width
    chosen += ["model.attention.window=3", "model.d_model=22"]
    load_config("tiny", chosen)
    with pytest.raises(SettingError, match=f"`model.{setting.partition('=')[0]}` acts only if"):
        load_config("tiny", [*chosen, f"model.{setting}"])


def test_fastformer_s_values_are_its_queries():
    chosen = ["model.decoder=bytenet", "model.attention.encoder=fastformer"]
    load_config("tiny", [*chosen, "model.heads=2"])
    with pytest.raises(SettingError, match=r"`model.d_v` acts only if"):
        load_config("tiny", [*chosen, "model.d_v=4"])


def test_a_decoder_with_one_vector_of_the_source_needs_residuals_and_has_no_scores():
    pooled = ["model.encoder=sum"]
    with pytest.raises(SettingError, match="would keep nothing of its own words"):
        load_config("tiny", [*pooled, "model.residuals=false"])
    with pytest.raises(SettingError, match=r"`model.attention.score` acts only if"):
        load_config(
            "tiny",
            [
                *pooled,
                "model.attention.decoder=fastformer-linear",
                "model.attention.score=additive",
            ],
        )
