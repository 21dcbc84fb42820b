"""Parsers tuned alike: what is divided, and what is chosen."""

import pytest
from benchmarks.parsers import RATES, SYSTEMS, body, chosen_rate, read_parts, trainings
from benchmarks.parsing import compare_trees
from benchmarks.report import data_folder, read

from heedful.experiments.record import Record
from heedful.tasks.parsing.trees.linearize import delinearize
from heedful.tasks.parsing.trees.read import parse_trees
from heedful.tasks.parsing.trees.score import score_trees


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


GOLD = ["(S (NP (D the) (N dog)) (VP (V runs)))", "(S (NP (N dogs)) (VP (V run) (NP (N men))))"]
FLAT = ["(S (D the) (N dog) (V runs))", "(S (N dogs) (V run) (N men))"]


def test_trees_are_compared_with_those_of_a_grammar():
    gold, flat = (list(parse_trees(lines, "trees")) for lines in (GOLD, FLAT))
    written = list(parse_trees(list(map(str, gold)), "outputs"))
    row = compare_trees(gold, written, score_trees(gold, flat))
    assert (row["f1"], row["up_to_40"], row["interval"]) == (100.0, 100.0, [100.0, 100.0])
    compared = row["grammar"]
    assert compared["f1"] + compared["difference"] == pytest.approx(100.0)
    low, high = compared["interval"]
    assert low <= compared["difference"] <= high


@pytest.mark.usefixtures("corpora")
def test_scores_of_parsers_follow_from_their_brackets():
    record = read("parsers")
    unseen = read_parts(data_folder()).unseen
    brackets = record.outputs["hybrid, seed 1, unseen"]
    trees = [
        delinearize(line.split(), gold.words, "vinyals", tags=gold.tags)
        for line, gold in zip(brackets, unseen, strict=True)
    ]
    scored = record.measurements["seeds"]["hybrid, seed 1"]["unseen"]
    assert score_trees(unseen, trees).f1 == pytest.approx(scored["f1"])
