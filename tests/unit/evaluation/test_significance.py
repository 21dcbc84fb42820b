"""What Moses and MultEval published of whole systems: tests/soak/test_significance.py."""

import random
from itertools import product

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from heedful.evaluation import significance
from heedful.evaluation.bleu import text_metrics
from heedful.evaluation.significance import Resampling, compare, confidence_intervals
from heedful.evaluation.sufficient_statistics import measure
from heedful.evaluation.validation import score_bleu
from heedful.text.corpus import read_lines


def bleu(hypotheses, references):
    return score_bleu(references, "")(hypotheses)


@pytest.fixture(scope="module")
def wmt21(corpora):
    """Two systems of 2021, half a point apart, and two references."""
    folder = corpora / "fixtures-bleu/wmt21-en-de"
    return (
        *(
            list(read_lines(folder / f"newstest2021.en-de.hyp.{system}.de.xz"))[:200]
            for system in ("UEdin", "Online-A")
        ),
        [
            list(read_lines(folder / f"newstest2021.en-de.ref.{letter}.de.xz"))[:200]
            for letter in "AC"
        ],
    )


@pytest.mark.parametrize(("test", "theirs"), [("bootstrap", "bs"), ("randomization", "ar")])
def test_p_values_are_sacrebleus_to_the_last_digit(wmt21, monkeypatch, test, theirs):
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    first, second, references = wmt21
    _, found = PairedTest(
        [("second", second), ("first", first)],
        {"BLEU": BLEU(), "chrF": CHRF()},
        references,
        test_type=theirs,
        n_samples=200,
    )()
    metrics = text_metrics(references)
    ours = [measure(metrics[name], first) for name in ("bleu", "chrf")]
    others = [measure(metrics[name], second) for name in ("bleu", "chrf")]
    compared = compare(ours, others, test, Resampling(200, seed=7))
    for name, comparison, (low, high) in zip(
        ("BLEU", "chrF2"), compared, confidence_intervals(ours, Resampling(200, 7)), strict=True
    ):
        other, one = found[name]
        assert comparison.p_value == one.p_value
        assert 0.01 < one.p_value < 1
        assert comparison.score == other.score
        assert comparison.score + comparison.difference == pytest.approx(one.score, abs=1e-12)
        if test == "bootstrap":
            assert (high - low) / 2 == pytest.approx(one.ci, abs=1e-4)
            assert low < one.mean < high


def small_texts(seed: int, lines: int) -> tuple[list[str], list[str], list[str]]:
    """References, and two systems that each get some words wrong."""
    draw = random.Random(seed)
    references = [[draw.choice("abcdefg") for _ in range(12)] for _ in range(lines)]

    def system(errors: float) -> list[str]:
        return [
            " ".join(word if draw.random() > errors else "x" for word in line)
            for line in references
        ]

    return [" ".join(line) for line in references], system(0.1), system(0.3)


def measured(references, *systems, name="bleu"):
    metric = text_metrics([references])[name]
    return [measure(metric, system) for system in systems]


def test_randomization_finds_the_share_of_all_exchanges():
    references, first, second = small_texts(2, lines=8)
    actual = abs(bleu(first, references) - bleu(second, references))
    as_large = 0
    for exchanged in product((False, True), repeat=8):
        pairs = list(zip(first, second, exchanged, strict=True))
        one = [theirs if swap else ours for ours, theirs, swap in pairs]
        other = [ours if swap else theirs for ours, theirs, swap in pairs]
        difference = bleu(one, references) - bleu(other, references)
        as_large += abs(difference) >= actual
    exact = as_large / 2**8
    (ours, theirs) = measured(references, first, second)
    (comparison,) = compare([ours], [theirs], "randomization", Resampling(20_000))
    assert 0.01 < exact < 0.5
    assert comparison.p_value == pytest.approx(exact, abs=4 * np.sqrt(exact / 20_000))


def test_bootstrap_intervals_are_those_of_text_drawn_line_by_line():
    references, first, second = small_texts(4, lines=20)
    samples = np.random.default_rng(11).integers(20, size=(200, 20)).tolist()

    def scores(system: list[str]) -> list[float]:
        return [
            bleu([system[line] for line in sample], [references[line] for line in sample])
            for sample in samples
        ]

    def middle(values: list[float]) -> tuple[float, float]:
        return sorted(values)[5], sorted(values)[-6]

    ours, theirs = measured(references, first, second)
    resampling = Resampling(200, seed=11)
    (interval,) = confidence_intervals([ours], resampling)
    assert interval == pytest.approx(middle(scores(first)), abs=1e-9)
    (comparison,) = compare([ours], [theirs], "bootstrap", resampling)
    apart = [one - other for one, other in zip(scores(first), scores(second), strict=True)]
    assert comparison.interval == pytest.approx(middle(apart), abs=1e-9)


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_a_system_is_no_better_than_itself(test, name):
    references, first, _ = small_texts(5, lines=30)
    ours, same = measured(references, first, first, name=name)
    (comparison,) = compare([ours], [same], test, Resampling(200))
    assert comparison.difference == 0
    assert comparison.interval == (0, 0)
    assert comparison.p_value == 1


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_the_other_way_round_is_the_same_with_the_sign_turned(test, name):
    references, first, second = small_texts(6, lines=60)
    ours, theirs = measured(references, first, second, name=name)
    (there,) = compare([ours], [theirs], test, Resampling(1000))
    (back,) = compare([theirs], [ours], test, Resampling(1000))
    assert there.difference == -back.difference != 0
    assert there.interval == pytest.approx([-end for end in reversed(back.interval)])
    assert there.p_value == back.p_value < 0.01
    better = there.difference < 0 if name == "ter" else there.difference > 0
    assert better


def test_equal_systems_rarely_look_different():
    p_values = []
    for seed in range(60):
        references, first, _ = small_texts(seed, lines=40)
        draw = random.Random(f"other {seed}")
        other = [
            " ".join(word if draw.random() > 0.1 else "x" for word in line.split())
            for line in references
        ]
        ours, theirs = measured(references, first, other)
        (comparison,) = compare([ours], [theirs], resampling=Resampling(150))
        p_values.append(comparison.p_value)
    # Of 60 draws from a uniform distribution, fewer than 13 are below 0.1 in 99 of 100 cases.
    assert sum(p_value < 0.1 for p_value in p_values) < 13
    assert 0.3 < np.mean(p_values) < 0.7


def test_small_blocks_draw_what_large_ones_do(monkeypatch):
    resampling = Resampling(100, seed=3)
    whole = [np.vstack(list(draws(37))) for draws in (resampling.samples, resampling.exchanges)]
    monkeypatch.setattr(significance, "_BLOCK", 1)
    blocks = [list(draws(37)) for draws in (resampling.samples, resampling.exchanges)]
    for together, parts in zip(whole, blocks, strict=True):
        assert [len(part) for part in parts] == [32, 32, 32, 4]
        assert (np.vstack(parts) == together).all()
    assert (whole[0].sum(axis=1) == 37).all()
    assert whole[1].mean() == pytest.approx(0.5, abs=0.05)
    assert not (whole[0] == np.vstack(list(Resampling(100, seed=4).samples(37)))).all()


def test_all_metrics_are_compared_on_the_same_draws():
    references, first, second = small_texts(8, lines=50)
    metrics = text_metrics([references])
    ours = [measure(metric, first) for metric in metrics.values()]
    theirs = [measure(metric, second) for metric in metrics.values()]
    for test in ("bootstrap", "randomization"):
        together = compare(ours, theirs, test, Resampling(300))
        alone = [
            compare([one], [other], test, Resampling(300))[0]
            for one, other in zip(ours, theirs, strict=True)
        ]
        assert together == alone
