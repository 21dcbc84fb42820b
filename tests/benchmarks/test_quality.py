"""Trials of equal time, and the page of BLEU on small corpora."""

import pytest
from benchmarks import quality
from benchmarks.quality import CORPORA, TRIALS, body, measure_rates, steps_in

from heedful.config.load import load_config
from heedful.experiments.record import Record

TRAINING = {
    "steps": 10,
    "minutes": 1.0,
    "target_tokens": 5000,
    "bleu": 30.0,
    "chrf": 60.0,
    "lower-cased": 31.0,
    "signatures": ["a", "b"],
}


@pytest.fixture
def rates(monkeypatch):
    known = dict.fromkeys(TRIALS, 4096.0)
    rates = {"trials": known, "multi30k": dict.fromkeys(TRIALS, 2 * 4096.0)}
    monkeypatch.setattr(quality, "measurements_of", lambda name: {"rates": rates})


@pytest.mark.parametrize("name", TRIALS)
def test_the_settings_of_every_trial_are_valid(name):
    assert load_config(quality.RECIPE, TRIALS[name]).train.schedule in ("paper", "cosine")


def test_a_second_pass_in_half_of_the_steps_is_paid_with_fewer_steps(rates):
    assert steps_in("wide", 1) == 60
    assert steps_in("wide", 1, "multi30k") == 120
    assert steps_in("wide, small batches", 1) == 120
    assert steps_in("wide, SimCut", 1) == int(60 / 1.65)
    assert steps_in("wide, R-Drop", 1) == int(60 / 1.75)


def test_trials_that_differ_by_the_objective_are_timed_once(monkeypatch):
    timed = []

    def count(recipe, trainings, threads):
        timed.append((threads, [training.settings for training in trainings]))
        return [float(number) for number in range(len(trainings))]

    monkeypatch.setattr(quality, "rates_in_turns", count)
    every = measure_rates()
    assert [*every] == ["trials", *CORPORA]
    for rates in every.values():
        assert [*rates] == [*TRIALS]
        assert rates["wide"] == rates["wide, SimCut"] == rates["wide, R-Drop"]
    assert [threads for threads, _ in timed] == [1, 2, 2, 2]
    assert all(len({*settings}) == len(settings) < len(TRIALS) for _, settings in timed)


def test_the_settings_of_every_corpus_are_valid(rates, monkeypatch, tmp_path):
    measured = []
    monkeypatch.setattr(quality, "_measure", lambda *arguments: measured.append(arguments))
    quality.measure_corpus("multi30k", 2, tmp_path)
    ((_, settings, part, _),) = measured
    train = load_config(quality.RECIPE, settings).train
    assert (train.steps, train.seed, train.threads, part) == (7200, 2, 2, "test")


def test_the_files_of_every_corpus_exist(corpora):
    for corpus in CORPORA.values():
        for part in corpus.parts:
            assert all(path.is_file() for path in corpus.paths(part))


def test_the_page_has_a_row_for_each_training():
    page = body(
        Record(
            "c",
            "m",
            {
                "corpora": {"multi30k, seed 2": TRAINING},
                "trials": {"wide": TRAINING | {"minutes": 30}},
            },
        )
    )
    assert "| Multi30k, English to German | 2 | 1 | 5,000 | 30.00 | 31.00 | 60.00 |" in page
    assert "Signatures: `a`, `b`." in page
    assert "| wide | `train.schedule=cosine`" in page
    rates = {"trials": {"wide": 9000.2}, "multi30k": {"wide": 14000.0}}
    page = body(Record("c", "m", {"rates": rates}))
    assert "| trial | Multi30k, one thread | Multi30k, English to German, two threads |" in page
    assert "| wide | 9,000 | 14,000 |" in page
