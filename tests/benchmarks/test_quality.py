"""Trials of equal time, and the page of BLEU on small corpora."""

import gzip
import json

import pytest
from benchmarks import quality, small_corpora
from benchmarks.quality import CORPORA, TRIALS, add_rates, body, measure_rates, steps_in
from benchmarks.small_corpora import Part

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
    "commit": "c1",
    "machine": "m1",
}


@pytest.fixture
def rates(monkeypatch):
    known = dict.fromkeys(TRIALS, 4096.0)
    rates = {"trials": known} | dict.fromkeys(CORPORA, dict.fromkeys(TRIALS, 2 * 4096.0))
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


def test_what_costs_no_time_is_paid_with_no_steps(monkeypatch):
    rates = {"trials": {"wide": 4096.0, "wide, rotary": 2048.0}}
    monkeypatch.setattr(quality, "measurements_of", lambda name: {"rates": rates})
    assert steps_in("wide, dropout 0.4", 1) == 60
    assert steps_in("wide, rotary, sampled subwords", 1) == 30
    assert steps_in("wide, rotary, SimCut", 1) == int(30 / 1.65)


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
    assert [threads for threads, _ in timed] == [1, *(2 for _ in CORPORA)]
    assert all(len({*settings}) == len(settings) < len(TRIALS) for _, settings in timed)


def test_later_trials_are_timed_beside_the_base_whose_rate_stays(monkeypatch):
    known = {kind: {quality.BASE: 100.0, "rotary": 7.0} for kind in ("trials", *CORPORA)}
    monkeypatch.setattr(
        quality, "measurements_of", lambda name: {"rates": known | {"commit": "c1"}}
    )
    monkeypatch.setattr(quality, "rates_in_turns", lambda recipe, timed, threads: [50.0, 40.0])
    rates = add_rates(["rotary"], {"commit": "c2", "machine": "m2"})
    for kind in ("trials", *CORPORA):
        assert rates[kind] == {quality.BASE: 100.0, "rotary": 80.0}
    assert rates["commit"] == "c1" and rates["added"]["rotary"]["commit"] == "c2"
    assert known["trials"]["rotary"] == 7.0
    rates = add_rates(["wide, rotary"], {"commit": "c2", "machine": "m2"})
    assert rates["trials"]["wide, rotary, SimCut"] == rates["trials"]["wide, rotary"] == 80.0


def test_the_settings_of_every_corpus_are_valid(rates, monkeypatch, tmp_path):
    measured = []
    monkeypatch.setattr(quality, "_measure", lambda *arguments: measured.append(arguments))
    quality.measure_corpus("multi30k", 2, 1, tmp_path)
    ((_, settings, part, _),) = measured
    train = load_config(quality.RECIPE, settings).train
    assert (train.steps, train.seed, train.threads, part) == (7200, 2, 1, "test")


@pytest.mark.parametrize(("corpus", "steps"), [("multi30k", 60), ("tatoeba-en-de", 120)])
def test_a_trial_is_scored_on_a_noisy_copy_too(rates, corpus, steps, monkeypatch, tmp_path):
    measured, scored = [], []

    def measure(*arguments):
        measured.append(arguments)
        return {"bleu": 31.0}, ["ein Hund"]

    def score(*arguments):
        scored.append(arguments)
        return {"scores": {"text": {"mixed": 17.0}}}

    texts = {side: tmp_path / side for side in ("source", "reference")}
    for path in texts.values():
        path.write_text("a dog runs .\n", "utf-8")
    monkeypatch.setattr(quality, "_measure", measure)
    monkeypatch.setattr(quality, "score_run", score)
    monkeypatch.setattr(small_corpora.SmallCorpus, "write", lambda *_: {"valid": [*texts.values()]})
    result, _ = quality.measure_trial("wide", corpus, 1.0, tmp_path / "run")
    assert result == {"bleu": 31.0, "noisy": 17.0}
    ((corpus_of, settings, part, _),) = measured
    train = load_config(quality.RECIPE, settings).train
    assert (corpus_of, train.steps, train.threads, part) == (CORPORA[corpus], steps, 1, "valid")
    ((run, copies, readings),) = scored
    assert (run, [*copies], readings) == (tmp_path / "run", ["mixed"], ("text",))


@pytest.mark.parametrize("name", CORPORA)
def test_every_corpus_has_aligned_text_of_its_parts(name, corpora, tmp_path):
    corpus = CORPORA[name]
    if name == "europarl-fr-en":
        corpus = corpus._replace(parts=corpus.parts | {"train": Part("train.00", slice(3000))})
    sizes = {}
    for part, paths in corpus.write(tmp_path).items():
        source, target = (path.read_text("utf-8").splitlines() for path in paths)
        sizes[part] = len(source)
        assert len(source) == len(target) > 0
        has_spaces = any(" " in line for line in target)
        assert has_spaces is (corpus.spaces != "removed")
        assert (" " in corpus.score_form("a b")) is (corpus.spaces != "scores")
    assert sizes["train"] > sizes["test"] >= 500


def test_a_missing_corpus_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(small_corpora, "data_folder", lambda: tmp_path)
    with pytest.raises(SystemExit, match=r"must contain train\.en\.\*.*set HEEDFUL_DATA"):
        CORPORA["tatoeba-en-de"].write(tmp_path / "text")


def test_translations_are_scored_in_the_form_of_the_references(rates, monkeypatch, tmp_path):
    corpus = CORPORA["tanaka-words"]._replace(
        folder="", parts={part: Part(part) for part in ("train", "valid", "test")}
    )
    monkeypatch.setattr(small_corpora, "data_folder", lambda: tmp_path)
    for part in corpus.parts:
        for language, line in (("en", "a dog runs"), ("ja", "犬 が 走る")):
            with gzip.open(tmp_path / f"{part}.{language}.gz", "wt", encoding="utf-8") as file:
                file.write(f"{line}\n")
    run = tmp_path / "run"
    run.mkdir()
    asked = []

    def command(*words):
        asked.append(words)
        if words[0] == "translate":
            (run / "test.translated").write_text("犬 が\n", "utf-8")
        return json.dumps({kind: {"score": 1.0, "signature": "s"} for kind in ("bleu", "chrf")})

    monkeypatch.setattr(quality, "heedful", command)
    monkeypatch.setattr(quality, "train", lambda *arguments: asked.append(arguments))
    monkeypatch.setattr(quality, "describe_training", lambda run: {})
    measured, lines = quality._measure(corpus, (), "test", run)
    assert lines == ["犬が"]
    assert (tmp_path / "run-text" / "test.ja").read_text("utf-8") == "犬が走る\n"
    assert (tmp_path / "run-text" / "train.ja").read_text("utf-8") == "犬 が 走る\n"
    assert asked[-1][-3:] == ("--language", "ja", "--lowercase")
    assert measured["lower-cased"] == 1.0


def test_the_page_has_a_row_for_each_training():
    page = body(
        Record(
            "c",
            "m",
            {
                "corpora": {
                    "multi30k, seed 2": TRAINING,
                    "multi30k, seed 3": TRAINING | {"bleu": 32.0, "lower-cased": 34.0},
                    "europarl-fr-en, seed 1": TRAINING,
                },
                "trials": {
                    "wide": TRAINING | {"minutes": 30},
                    "wide; tatoeba-en-de": TRAINING | {"noisy": 29.0},
                },
            },
        )
    )
    assert "| Multi30k, English to German | 2 | 1 | 5,000 | 30.00 | 31.00 | 60.00 |" in page
    assert "Signatures: `a`, `b`." in page
    means = "BLEU 31.00 (30.00 to 32.00), lower-cased BLEU 32.50 (31.00 to 34.00)"
    assert f"Means over 2 seeds of Multi30k, English to German: {means}." in page
    assert page.count("Means over") == 1
    assert "on m1: multi30k, seed 2; multi30k, seed 3; europarl-fr-en, seed 1." in page
    assert "Measured at commit c1 on m1: wide; wide; tatoeba-en-de." in page
    rows = [line for line in page.splitlines() if line.startswith("| wide | `train.schedule=")]
    assert [row.split(" | ")[-1] for row in rows] == [" |", "29.00 |"]
    assert page.index("Tatoeba, English to German:") < page.index(rows[1])
    rates = {"trials": {"wide": 9000.2}, "multi30k": {"wide": 14000.0}}
    rates |= {"commit": "c2", "machine": "m2"}
    page = body(Record("c", "m", {"rates": rates}))
    assert "| trial | multi30k, one thread | multi30k |" in page
    assert "| wide | 9,000 | 14,000 |" in page
