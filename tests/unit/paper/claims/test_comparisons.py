"""Sentences about the BLEU of two models, of made-up trainings."""

from heedful.experiments.page import ScoreDifference
from heedful.paper.claims.comparisons import compare_bleu, say_growth, still_rising, useless
from heedful.paper.systems.measured import CurvePoint


def test_a_model_that_has_learnt_nothing_is_compared_with_none(trainings):
    found = trainings(
        {"able": 8, "weak": 0, "weaker": 0}, weak={"bleu": 0.99}, weaker={"bleu": 0.0}
    )
    assert compare_bleu(found, "able", "weak") == (
        "Able and weak are not compared: weak (1.0 BLEU) has learnt nothing of use."
    )
    assert compare_bleu(found, "weaker", "weak") == (
        "Weaker and weak are not compared: weaker (0.0 BLEU), weak (1.0 BLEU) have learnt nothing "
        "of use."
    )
    assert [system.name for system in useless(found, ("able", "weak"))] == ["weak"]


def test_others_are_compared_by_their_lines(trainings):
    found = trainings({"one": 8, "other": 4}, other={"bleu": 1.0})
    assert compare_bleu(found, "one", "other").startswith("One minus other: +")
    assert not useless(found, ("one", "other"))


def test_growth_and_rise_are_said():
    growth = ScoreDifference("a", "b", 2.0, (0.5, 3.5), "BLEU")
    assert say_growth(growth) == (
        "That is +2.0 beside the other three quarters (95 % interval +0.5 to +3.5)."
    )


def test_what_still_rises_is_named(trainings):
    rises = {"curve": tuple(CurvePoint(n, 1.0 * n, 1e9 * n, 5.0, 4.0 * n) for n in (1, 2))}
    found = trainings({"one": 8, "other": 4}, one=rises, other={"curve": ()})
    assert still_rising(found, ("one", "other")) == (
        " Validation BLEU was still rising: one (4.0, then 8.0); after more steps the differences "
        "would be others."
    )
