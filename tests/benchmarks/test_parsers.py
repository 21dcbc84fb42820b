"""Parsers tuned alike: what is divided, and what is chosen."""

from benchmarks.parsers import RATES, SYSTEMS, body, chosen_rate, read_parts, trainings
from benchmarks.report import data_folder

from heedful.experiments.record import Record


def trial(perplexity):
    return {"steps": 10, "perplexity": perplexity, "f1": 50.0}


def test_every_file_of_the_sample_is_in_one_part():
    parts = read_parts(data_folder())
    assert [len(part) for part in parts] == [3_253, 143, 273]
    words = [{tree.words for tree in part} for part in parts]
    assert not words[0] & words[1] & words[2]


def test_a_rate_is_chosen_when_all_were_tried():
    trials = {f"lstm, {rate}": trial(9.0 - place) for place, rate in enumerate(RATES)}
    assert chosen_rate(trials, "lstm") == RATES[-1]
    assert chosen_rate(trials, "hybrid") is None
    trials[f"lstm, {RATES[1]}"]["perplexity"] = 1.0
    assert chosen_rate(trials, "lstm") == RATES[1]
    del trials[f"lstm, {RATES[0]}"]
    assert chosen_rate(trials, "lstm") is None


def test_each_system_has_as_many_trials():
    made = [training.system for training in trainings("trials")]
    assert {made.count(system) for system in SYSTEMS} == {len(RATES)}


def test_seeds_are_one_row_with_their_spread():
    seeds = {
        f"lstm, seed {seed}": {"steps": 900, "dev": {"f1": f1}, "unseen": {"f1": f1 - 4.0}}
        for seed, f1 in ((1, 80.0), (2, 81.0), (3, 82.0))
    }
    page = body(Record("abc", "a machine", {"seeds": seeds}))
    assert "| LSTM with attention, 2 + 1 layers | 81.0 ± 1.0 | 77.0 ± 1.0 | 3 | 900 |" in page
    assert "## Trials" not in page
