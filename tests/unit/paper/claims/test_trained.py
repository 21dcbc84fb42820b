import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from heedful.bench.random_run import make_random_run
from heedful.config.load import load_config
from heedful.config.schema import RunConfig
from heedful.experiments.estimate import Estimate
from heedful.experiments.measured import CurvePoint
from heedful.experiments.page import ScoreDifference
from heedful.experiments.system import count_parameters
from heedful.experiments.work import build
from heedful.model.initialize import initialize
from heedful.paper.claims import trained as trained_module
from heedful.paper.claims.models import BATCH_SIZES, COST, ENCODERS, HEAD_COUNTS, HEADS, SCORES
from heedful.paper.claims.table import CLAIMS
from heedful.paper.claims.trained import (
    compare_bleu,
    say_growth,
    sharpen,
    still_rising,
    useless,
)
from heedful.paper.claims.trainings import COMMON, RECIPE, Trainings

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


def all_learned(names):
    """Curves of models that learn no more."""
    return {name: {"curve": curve(5.0, (10.0, 20.0, 20.5))} for name in names}


def values(checked, panel=0):
    return {one.name: one.values for one in checked.panels[panel].curves}


def test_every_claims_models_can_be_built():
    trained_claims = [claim for claim in CLAIMS.values() if claim.systems]
    assert len(trained_claims) == 8
    for claim in trained_claims:
        for system in claim.systems:
            load_config(RECIPE, (*COMMON, *system.settings))


@pytest.mark.parametrize(
    ("good", "seen", "bleu", "holds"),
    [
        (0, 1.01, 0.1, True),
        (0, 5.4, 0.1, True),
        (0, 5.6, 0.1, None),
        (8, 1.0, 90.0, False),
        (4, 1.01, 40.0, False),
    ],
)
def test_a_mask_is_needed_where_loss_falls_and_translation_fails(
    trainings, good, seen, bleu, holds
):
    found = trainings(
        {"transformer": 8, "no-mask": good},
        **{
            "transformer": {"curve": curve(5.0, (10.0, 20.0))},
            "no-mask": {"curve": curve(seen, (0.0, 0.1)), "bleu": bleu},
        },
    )
    checked = CLAIMS["mask"].check(found)
    assert checked.holds is holds
    assert values(checked, 1)["without mask"] == (0.0, 0.1)
    number = f"translations have {bleu:.1f} BLEU ("
    if seen > 5.5:
        number = "the perplexity on reference translations is 1.12 times as high as with a mask."
    assert checked.headline.startswith(f"Without a mask, {number}")


@pytest.mark.parametrize(("blind", "holds"), [(4, True), (8, None)])
def test_attention_is_needed_where_long_sentences_lose_most(trainings, blind, holds):
    good = {"attending": 8, "blind": blind}
    checked = CLAIMS["attention"].check(trainings(good, **all_learned(good)))
    assert checked.holds is holds
    assert checked.panels[0].sizes == (1, 2, 3, 6)
    assert checked.sentence.startswith("Attending minus blind: +")
    longest = "Attending minus blind in the longest quarter of the sentences: +"
    assert checked.headline.startswith(
        f"{longest}100.0 BLEU (" if holds else f"{longest}0.0 BLEU ("
    )


@pytest.mark.parametrize(("last", "rising"), [(20.5, False), (24.0, True)])
def test_a_model_that_still_learns_is_named(trainings, last, rising):
    blind = {"curve": curve(5.0, (10.0, 20.0, last))}
    checked = CLAIMS["attention"].check(
        trainings(
            {"attending": 8, "blind": 4},
            attending={"curve": curve(5.0, (30.0, 90.0, 90.1))},
            blind=blind,
        )
    )
    named = "validation BLEU still rose in the last quarter of the training: blind (by 3.0)."
    assert (named in checked.sentence) is rising
    assert (named in checked.headline) is rising
    assert checked.holds is (None if rising else True)


def test_validations_one_step_apart_do_not_hide_that_a_model_still_learns(trainings):
    def validated(*bleus):
        steps = (160, 320, 321)
        points = zip(steps, bleus, strict=True)
        return {"curve": tuple(CurvePoint(n, 0.1 * n, 1e9 * n, 1.3, bleu) for n, bleu in points)}

    good = {system.name: 8 if system.name.startswith("additive") else 1 for system in SCORES}
    good |= {name: 2 for name in good if name.endswith("-16")}
    curves = dict.fromkeys(good, validated(85.6, 86.1, 86.1))
    assert CLAIMS["scores"].check(trainings(good, **curves)).holds
    curves["additive-512"] = validated(60.0, 86.1, 86.1)
    checked = CLAIMS["scores"].check(trainings(good, "still rising", **curves))
    assert checked.holds is None
    assert checked.headline.endswith("last quarter of the training: additive-512 (by 12.9).")


def test_self_attention_must_be_above_every_other_encoder(trainings):
    good = {"self-attention": 8, "recurrent": 2, "convolution": 2, "average": 1, "sum": 1}
    assert CLAIMS["encoders"].check(trainings(good, "still rising")).holds is None
    assert CLAIMS["encoders"].check(trainings(good, **all_learned(good))).holds


def test_an_encoder_that_is_as_good_decides_against_it(trainings):
    good = {"self-attention": 8, "recurrent": 8, "convolution": 2, "average": 1, "sum": 1}
    checked = CLAIMS["encoders"].check(trainings(good, **all_learned(good)))
    assert checked.holds is None  # as good as the best, as far as these sentences tell
    assert "+0.0 BLEU" in checked.sentence
    assert checked.headline == "Self-attention minus recurrent: +0.0 BLEU (0.0 to 0.0)."
    better = {"self-attention": 2, "recurrent": 8, "convolution": 2, "average": 1, "sum": 1}
    assert (
        CLAIMS["encoders"].check(trainings(better, "again", **all_learned(better))).holds is False
    )


@pytest.mark.parametrize("better", ["additive", "unscaled"])
def test_the_largest_width_decides_between_scores(trainings, better):
    good = {system.name: 8 if system.name.startswith(better) else 1 for system in SCORES}
    good |= {name: 2 for name in good if name.endswith("-16")}
    assert CLAIMS["scores"].check(trainings(good, "still rising")).holds is None
    checked = CLAIMS["scores"].check(trainings(good, **all_learned(good)))
    assert checked.holds is (better == "additive")
    assert checked.headline.startswith("Additive-512 minus unscaled-512: ")
    assert checked.panels[0].sizes == (16, 64, 256, 512)
    assert [*values(checked)] == ["scaled", "unscaled", "additive"]


def test_a_lead_that_does_not_grow_with_the_width_decides_nothing(trainings):
    good = {system.name: 8 if system.name.startswith("additive") else 1 for system in SCORES}
    checked = CLAIMS["scores"].check(trainings(good, **all_learned(good)))
    assert checked.holds is None
    assert (
        checked.headline
        == "From d_k 16 to 512, additive attention's lead over dot products without the scale "
        "changes by +0.0 BLEU (95% interval +0.0 to +0.0)."
    )


def costs(*seconds):
    """Curves of pairs of a Transformer and a recurrent model; the second takes so many seconds."""
    changed = {}
    for seed, each in enumerate(seconds, start=1):
        changed[f"transformer-{seed}"] = {"curve": curve(5.0, (2.0, 22.0, 42.0))}
        changed[f"recurrent-{seed}"] = {"curve": curve(5.0, (1.0, 11.0, 21.0), seconds=each)}
    return changed


def test_cost_is_read_where_a_quality_is_first_reached(trainings):
    found = trainings(dict.fromkeys(costs(1.0, 1.0, 1.0), 8), **costs(3.0, 3.1, 2.9))
    checked = CLAIMS["cost"].check(found)
    assert checked.holds
    assert checked.panels[0].sizes == (5, 10, 15, 18, 20)
    assert values(checked)["Transformer"][:2] == pytest.approx((1.15e9, 1.4e9))
    assert values(checked, 1)["recurrent with attention"][:2] == pytest.approx((4.2, 5.7))
    assert checked.panels[1].curves[1].margins[1] == pytest.approx(1.9 * 4.303 * 0.1 / 3**0.5)
    assert "for 10 BLEU, 1.4 times the operations (1.4 to 1.4) and " in checked.sentence
    assert checked.headline == (
        "For 5 BLEU, the recurrent model takes 1.2 times the operations of the Transformer "
        "(1.2 to 1.2)."
    )
    assert "2.3e+19 operations for GNMT + RL (24.6 BLEU)" in checked.sentence
    assert "a ratio of 7.0." in checked.sentence


def test_qualities_that_a_first_validation_has_are_not_compared(trainings):
    early = costs(3.0, 3.1, 2.9)
    early["transformer-2"] = {"curve": curve(5.0, (16.0, 22.0, 42.0))}
    checked = CLAIMS["cost"].check(trainings(dict.fromkeys(early, 8), **early))
    assert checked.panels[0].sizes == (18, 20)
    early["recurrent-1"] = {"curve": curve(5.0, (21.0, 21.0))}
    checked = CLAIMS["cost"].check(trainings(dict.fromkeys(early, 8), "again", **early))
    assert checked.holds is None
    assert "above 21.0, the highest BLEU of a first validation" in checked.sentence


@pytest.mark.parametrize(("seconds", "holds"), [((0.1, 9.0, 1.0), None), ((0.3, 0.31, 0.3), False)])
def test_seeds_that_disagree_decide_nothing_and_one_dearer_cost_against_it(
    trainings, seconds, holds
):
    found = trainings(dict.fromkeys(costs(1.0, 1.0, 1.0), 8), **costs(*seconds))
    assert CLAIMS["cost"].check(found).holds is holds


def test_every_quality_must_cost_less(trainings):
    """The recurrent model is dearer at first, and cheaper at the highest quality."""
    changed = {}
    for seed in (1, 2, 3):
        changed[f"transformer-{seed}"] = {"curve": curve(5.0, (1.0, 15.0, 16.0, 17.0, 18.0, 22.0))}
        changed[f"recurrent-{seed}"] = {"curve": curve(5.0, (0.5, 6.0, 13.0, 21.0, 22.0, 22.0))}
    assert CLAIMS["cost"].check(trainings(dict.fromkeys(changed, 8), **changed)).holds is False


def test_models_that_learned_nothing_decide_nothing(trainings):
    poor = {name: {"curve": curve(5.0, (0.0, 0.4))} for name in costs(1.0, 1.0, 1.0)}
    checked = CLAIMS["cost"].check(trainings(dict.fromkeys(poor, 0), **poor))
    assert checked.holds is None
    assert checked.panels[0].sizes == (10, 20)


@pytest.mark.parametrize(
    ("good", "holds"),
    [
        ({32: 1, 128: 8, 512: 8}, True),
        ({32: 8, 128: 8, 512: 8}, None),
        ({32: 1, 128: 1, 512: 1}, None),  # as far behind at every size
        ({32: 7, 128: 1, 512: 1}, False),  # further behind in large ones
    ],
)
def test_batch_norm_must_fall_behind_in_small_batches_alone(trainings, good, holds):
    lines = {f"layer-{size}": 8 for size in good} | {f"batch-{size}": n for size, n in good.items()}
    assert CLAIMS["batch-size"].check(trainings(lines, "still rising")).holds is None
    checked = CLAIMS["batch-size"].check(trainings(lines, **all_learned(lines)))
    assert checked.holds is holds
    assert checked.panels[0].sizes == (32, 128, 512)
    assert [*values(checked)] == ["layer norm", "batch norm"]


def test_the_interval_of_a_growing_lead_is_of_the_same_sentences(trainings):
    good = {"layer-32": 8, "batch-32": 1, "layer-512": 8, "batch-512": 2}
    found = trainings(good)
    point, (low, high) = found.growth_between(("layer-32", "batch-32"), ("layer-512", "batch-512"))
    apart = [
        found.difference(*pair) for pair in (("layer-32", "batch-32"), ("layer-512", "batch-512"))
    ]
    assert point == pytest.approx(apart[0].difference - apart[1].difference)
    widths = [one.interval[1] - one.interval[0] for one in apart]
    assert 0 < high - low < sum(widths)  # their errors are alike, and cancel
    same, interval = found.growth_between(*[("layer-32", "batch-32")] * 2)
    assert (same, *interval) == (0, 0, 0)


def test_models_of_all_batch_sizes_see_as_many_tokens():
    for system in BATCH_SIZES:
        (tokens,) = (
            int(one.partition("=")[2])
            for one in system.settings
            if one.startswith("train.batch_tokens=")
        )
        assert tokens * system.times == 512


@pytest.mark.parametrize("systems", [ENCODERS, COST])
def test_models_that_are_compared_have_equal_weights(systems):
    weights = [
        count_parameters(
            load_config(RECIPE, (*COMMON, *system.settings, "data.vocabulary_size=1000"))
        )
        for system in systems
    ]
    assert max(weights) / min(weights) < 1.02


@pytest.fixture
def lines_of_words(trainings):
    """Trainings of random weights, whose test is made of their words."""

    def made(names):
        found = trainings(dict.fromkeys(names, 4))
        corpus = found.corpus
        for language in (corpus.source, corpus.target):
            lines = [" ".join(f"w{n}" for n in range(1, 3 + row)) for row in (0, 2, 4, 6)]
            corpus.file("test", language).write_text("".join(f"{one}\n" for one in lines), "utf-8")
        for name in names:
            heads = {"model.heads": int(name[-1])} if name.startswith("heads") else {}
            config = RunConfig().with_settings({**SMALL, **heads})
            (found.folder / "runs" / name).mkdir(parents=True)
            make_random_run(found.folder / "runs" / name, config, 50)
        return found

    return made


def test_heads_that_learned_nothing_are_as_different_as_before(lines_of_words):
    checked = CLAIMS["heads"].check(lines_of_words([system.name for system in HEADS]))
    assert not checked.holds
    assert "It is averaged over 4 sentences, " in checked.sentence
    after, before, sharp = values(checked).values()
    assert checked.headline.startswith("Trained minus untrained")
    assert after == pytest.approx(before, rel=1e-3)
    assert sharp == pytest.approx(before, rel=1e-2)
    assert all(1 < one < heads for one, heads in zip(after, (2, 4, 8), strict=True))


def test_sharper_heads_that_learned_nothing_do_not_decide(lines_of_words, monkeypatch):
    found = lines_of_words([system.name for system in HEADS])
    load = Trainings.translator

    def sharper(trained, name):
        translator = load(trained, name)
        fresh = trained_module._untrained_model(translator)
        sharpen(fresh, [0.8] * 2, lambda one: trained_module._entropies(trained, one))
        return fresh

    monkeypatch.setattr(Trainings, "translator", sharper)
    checked = CLAIMS["heads"].check(found)
    after, before, _ = values(checked).values()
    assert all(more > 1.05 * less for more, less in zip(after, before, strict=True))
    assert not checked.holds


@pytest.mark.parametrize(
    ("after", "before", "sharp", "holds"),
    [
        (1.9, 1.1, 1.5, True),
        (1.3, 1.1, 1.5, None),  # more than before, less than any attention as sharp
        (1.05, 1.1, 1.5, False),
    ],
)
def test_heads_are_compared_with_random_ones_as_sharp(
    lines_of_words, monkeypatch, after, before, sharp, holds
):
    found = lines_of_words([system.name for system in HEADS])
    near = np.linspace(-0.01, 0.01, 40)
    counted = itertools.cycle([list(mean + near) for mean in (after, before, sharp)])
    monkeypatch.setattr(trained_module, "_different_heads", lambda *_: next(counted))
    monkeypatch.setattr(trained_module, "sharpen", lambda *_: None)  # nothing of it is counted
    checked = CLAIMS["heads"].check(found)
    assert checked.holds is holds
    assert values(checked)["trained"] == pytest.approx([after] * len(HEADS))
    untrained, less = (
        ("untrained", before) if after < before else ("untrained and sharpened", sharp)
    )
    doubt = (
        " The claim would be refuted only by fewer different heads than in the untrained model "
        "without sharpening."
        if holds is None
        else ""
    )
    assert checked.headline == (
        f"Trained minus {untrained} (2 heads): {after - less:+.2f} different heads "
        f"({after - less:.2f} to {after - less:.2f}).{doubt}"
    )


@pytest.mark.parametrize(
    ("gains", "count"),
    [
        ([(0.3, 0.1), (0.2, 0.15), (0.5, 0.1)], 4),  # all above 0: the lowest limit
        ([(0.3, 0.1), (-0.1, 0.2), (0.1, 0.4)], 4),
        ([(-0.1, 0.5), (-0.05, 0.01), (0.5, 0.1)], 4),  # surely below 0, though not the smallest
    ],
)
def test_the_number_of_heads_that_decides_has_the_gain_that_counts_most_against(gains, count):
    estimates = [Estimate(*gain) for gain in gains]
    assert trained_module._deciding_gain(estimates) == (estimates[HEAD_COUNTS.index(count)], count)


def test_each_layer_is_sharpened_until_its_attention_has_the_entropy_wanted():
    model = build(RunConfig().with_settings(SMALL), 50).eval()
    initialize(model, 1)
    queries = [
        model.encoder.layers[0].self_attention.qkv_proj,
        model.decoder.layers[0].cross_attention.qkv_proj,
    ]
    before = [one.weight.detach().clone() for one in queries]

    def entropies(_translator):
        """They fall as the weights grow."""
        return [
            float(first[0, 0] / one.weight.detach()[0, 0])
            for one, first in zip(queries, before, strict=True)
        ]

    sharpen(SimpleNamespace(models=[model]), [1 / 4, 1 / 9], entropies)
    width = model.encoder.layers[0].self_attention.widths[0]
    for one, first, factor in zip(queries, before, (4, 9), strict=True):
        assert torch.allclose(one.weight[:width], factor * first[:width], rtol=1e-3)
        assert torch.equal(one.weight[width:], first[width:])


WEAK = {"bleu": 0.3, "curve": curve(5.0, (0.2, 0.3))}


@pytest.mark.parametrize(
    ("name", "good", "weak"),
    [
        ("attention", {"attending": 8, "blind": 1}, "blind"),
        ("encoders", {one.name: 1 for one in ENCODERS} | {"self-attention": 8}, "sum"),
        ("batch-size", {one.name: 1 for one in BATCH_SIZES} | {"layer-32": 8}, "batch-32"),
        ("scores", {one.name: 1 for one in SCORES} | {"additive-512": 8}, "unscaled-512"),
    ],
)
def test_nothing_is_decided_by_a_model_that_has_learned_nothing(trainings, name, good, weak):
    check = CLAIMS[name].check
    learned = all_learned(good)
    decided = check(trainings(good, **learned))
    assert " minus " in decided.sentence
    checked = check(trainings(good, "again", **learned | {weak: WEAK}))
    assert checked.holds is None
    assert f"{weak} (0.3 BLEU) has learned nothing useful" in checked.sentence
    assert f" minus {weak}" not in checked.sentence
    assert "(0.3 BLEU) has learned nothing useful." in checked.headline
    assert "changes by" not in checked.sentence
    assert len(checked.panels) == len(decided.panels)


def test_a_model_that_has_learned_nothing_is_compared_with_none(trainings):
    found = trainings(
        {"able": 8, "weak": 0, "weaker": 0}, weak={"bleu": 0.99}, weaker={"bleu": 0.0}
    )
    assert compare_bleu(found, "able", "weak") == (
        "Able and weak are not compared: weak (1.0 BLEU) has learned nothing useful."
    )
    assert compare_bleu(found, "weaker", "weak") == (
        "Weaker and weak are not compared: weaker (0.0 BLEU), weak (1.0 BLEU) have learned nothing "
        "useful."
    )
    assert [system.name for system in useless(found, ("able", "weak"))] == ["weak"]


def test_others_are_compared_by_their_lines(trainings):
    found = trainings({"one": 8, "other": 4}, other={"bleu": 1.0})
    assert compare_bleu(found, "one", "other").startswith("One minus other: +")
    assert not useless(found, ("one", "other"))


def test_growth_and_rise_are_said():
    growth = ScoreDifference("a", "b", -2.0, (-3.5, -0.5), "BLEU")
    assert say_growth(growth) == (
        "A minus b: the difference in the longest quarter minus the difference in the other "
        "sentences is -2.0 BLEU (95% interval -3.5 to -0.5)."
    )


def test_what_still_rises_is_named(trainings):
    rises = {"curve": tuple(CurvePoint(n, 1.0 * n, 1e9 * n, 5.0, 4.0 * n) for n in (1, 2))}
    found = trainings({"one": 8, "other": 4}, one=rises, other={"curve": ()})
    assert still_rising(found, ("one", "other")) == ["one (by 2.0)"]
