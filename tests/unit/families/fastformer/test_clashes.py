"""Settings that do not go together with Fastformer."""

import pytest

from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.families.fastformer.clashes import fastformer_clashes


def test_it_fits_by_itself():
    both = ["model.attention.encoder=fastformer", "model.attention.decoder=fastformer-linear"]
    assert [*fastformer_clashes(load_config("tiny", both).model)] == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["attention.encoder=fastformer", "d_k=5"], "`model.d_k` must be none"),
        (
            ["attention.encoder=fastformer", "encoder_heads=3"],
            "the number of heads in the encoder must divide `model.d_model` (64)",
        ),
        (
            ["attention.decoder=fastformer-linear", "causal_mask=false"],
            "which never reads later positions",
        ),
        (
            [
                "attention.encoder=fastformer",
                "attention.decoder=fastformer-linear",
                "attention.window=2",
            ],
            "`model.attention.window` applies only if",
        ),
    ],
)
def test_what_does_not_fit_is_named(settings, words):
    with pytest.raises(SettingError) as caught:
        load_config("tiny", [f"model.{setting}" for setting in settings])
    assert words in str(caught.value)


@pytest.mark.family("recurrent")
def test_scores_need_attention():
    chosen = ["model.decoder=recurrent", "model.recurrent.start=mean"]
    chosen += ["model.attention.encoder=fastformer"]
    load_config("tiny", chosen)
    with pytest.raises(SettingError, match="score` applies only if"):
        load_config("tiny", [*chosen, "model.attention.score=additive"])


@pytest.mark.family("bytenet")
def test_fastformer_s_values_are_its_queries():
    chosen = ["model.decoder=bytenet", "model.attention.encoder=fastformer"]
    load_config("tiny", [*chosen, "model.heads=2"])
    with pytest.raises(SettingError, match=r"`model.d_v` applies only if"):
        load_config("tiny", [*chosen, "model.d_v=4"])


@pytest.mark.family("pooled")
def test_a_decoder_with_one_vector_of_the_source_has_no_scores():
    pooled = ["model.encoder=sum"]
    with pytest.raises(SettingError, match=r"`model.attention.score` applies only if"):
        load_config(
            "tiny",
            [
                *pooled,
                "model.attention.decoder=fastformer-linear",
                "model.attention.score=additive",
            ],
        )
