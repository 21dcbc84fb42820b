import pytest

from heedful.bench.random_run import make_random_run
from heedful.config.load import load_config
from heedful.config.schema import RunConfig
from heedful.paper.claims import trained
from heedful.paper.claims.check import CLAIMS
from heedful.paper.claims.statement import TrainedStatement
from heedful.paper.claims.trained import (
    check_attention,
    check_cost,
    check_encoders,
    check_heads,
    check_long,
    check_mask,
    check_scores,
)
from heedful.paper.claims.trainings import COMMON, RECIPE
from heedful.paper.systems.measured import CurvePoint

SMALL = {
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.tie_embeddings": "none",
    "data.vocabulary_size": 50,
}


def curve(perplexity, bleus, seconds=1.0):
    return tuple(
        CurvePoint(10 * n, seconds * n, 1e9 * n, perplexity, bleu)
        for n, bleu in enumerate(bleus, start=1)
    )


def values(checked, panel=0):
    return {one.name: one.values for one in checked.panels[panel].curves}


def test_every_claims_models_can_be_built():
    trained_claims = [claim for claim in CLAIMS.values() if isinstance(claim, TrainedStatement)]
    assert len(trained_claims) == 7
    for claim in trained_claims:
        for system in claim.systems:
            load_config(RECIPE, (*COMMON, *system.settings))


@pytest.mark.parametrize(
    ("good", "seen", "holds"), [(0, 1.01, True), (0, 7.0, False), (8, 1.0, False)]
)
def test_a_mask_is_needed_where_loss_falls_and_translation_fails(trainings, good, seen, holds):
    found = trainings(
        {"transformer": 8, "no-mask": good},
        **{
            "transformer": {"curve": curve(5.0, (10.0, 20.0))},
            "no-mask": {"curve": curve(seen, (0.0, 0.1))},
        },
    )
    checked = check_mask(found)
    assert checked.holds is holds
    assert values(checked, 1)["without mask"] == (0.0, 0.1)


@pytest.mark.parametrize(("blind", "holds"), [(4, True), (8, False)])
def test_attention_is_needed_where_long_sentences_lose_most(trainings, blind, holds):
    checked = check_attention(trainings({"attending": 8, "blind": blind}))
    assert checked.holds is holds
    assert checked.panels[0].sizes == (1, 2, 3, 6)


def test_self_attention_must_be_above_every_other_encoder(trainings):
    good = {"self-attention": 8, "recurrent": 2, "convolution": 2, "average": 1, "sum": 1}
    assert check_encoders(trainings(good)).holds


def test_an_encoder_that_is_as_good_decides_against_it(trainings):
    good = {"self-attention": 8, "recurrent": 8, "convolution": 2, "average": 1, "sum": 1}
    checked = check_encoders(trainings(good))
    assert not checked.holds
    assert "+0.0 BLEU" in checked.sentence


@pytest.mark.parametrize("better", ["additive", "unscaled"])
def test_the_largest_width_decides_between_scores(trainings, better):
    good = {system.name: 8 if system.name.startswith(better) else 1 for system in trained.SCORES}
    checked = check_scores(trainings(good))
    assert checked.holds is (better == "additive")
    assert checked.panels[0].sizes == (16, 64, 256)
    assert [*values(checked)] == ["scaled", "unscaled", "additive"]


def test_cost_is_read_where_a_quality_is_first_reached(trainings):
    found = trainings(
        {"transformer": 8, "recurrent": 8},
        transformer={"curve": curve(5.0, (20.0, 40.0))},
        recurrent={"curve": curve(5.0, (10.0, 20.0), seconds=3.0)},
    )
    checked = check_cost(found)
    assert checked.holds
    assert checked.panels[0].sizes == (5, 10, 15, 18)
    assert values(checked)["Transformer"] == pytest.approx((0.25e9, 0.5e9, 0.75e9, 0.9e9))
    assert values(checked, 1)["recurrent with attention"] == pytest.approx((1.5, 3.0, 4.5, 5.4))


def test_models_that_learned_nothing_decide_nothing(trainings):
    found = trainings(
        {"transformer": 0, "recurrent": 0},
        transformer={"curve": curve(5.0, (0.0, 0.4))},
        recurrent={"curve": curve(5.0, (0.0, 0.0))},
    )
    checked = check_cost(found)
    assert checked.holds is None
    assert checked.panels[0].sizes == (10, 20)


@pytest.fixture
def lines_of_words(trainings):
    """Trainings of random weights, whose test is made of their words."""

    def made(names):
        found = trainings(dict.fromkeys(names, 8))
        corpus = found.corpus
        for language in (corpus.source, corpus.target):
            lines = [" ".join(f"w{n}" for n in range(1, 2 + row)) for row in range(8)]
            corpus.file("test", language).write_text("".join(f"{one}\n" for one in lines), "utf-8")
        for name in names:
            heads = {"model.heads": int(name[-1])} if name.startswith("heads") else {}
            config = RunConfig().with_settings({**SMALL, **heads})
            (found.folder / "runs" / name).mkdir(parents=True)
            make_random_run(found.folder / "runs" / name, config, 50)
        return found

    return made


def test_heads_that_learned_nothing_are_as_far_apart_as_before(lines_of_words):
    checked = check_heads(lines_of_words([system.name for system in trained.HEADS]))
    assert not checked.holds
    assert values(checked)["trained"] == pytest.approx(values(checked)["before training"], rel=1e-3)
    assert all(0 < value < 1 for value in values(checked)["trained"])


def test_long_sentences_have_gradients_too(lines_of_words):
    names = ("transformer", "recurrent", "convolutional")
    found = lines_of_words(names)
    for name in names:
        text = found.corpus.file("test", "yy").read_text("utf-8")
        (found.folder / "output" / f"{name}.test.txt").write_text(text, "utf-8")
    checked = check_long(found)
    assert not checked.holds  # all are alike
    shares = values(checked, 1)["Transformer"]
    assert len(shares) == 4
    assert min(shares) > 0
