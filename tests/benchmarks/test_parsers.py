"""Parsers tuned alike: what is divided, and what is chosen."""

from itertools import combinations

import pytest
from benchmarks.parsers import (
    GRAMMARS,
    RATES,
    SYSTEMS,
    body,
    chosen_rate,
    differences,
    read_files,
    read_parts,
    score_rows,
    trainings,
)
from benchmarks.parsers_picture import draw
from benchmarks.parsing import compare_trees
from benchmarks.report import data_folder, read

from heedful.experiments.record import Record
from heedful.tasks.parsing.trees.linearize import delinearize
from heedful.tasks.parsing.trees.read import parse_trees
from heedful.tasks.parsing.trees.score import score_trees


def trial(perplexity):
    return {"steps": 10, "perplexity": perplexity, "f1": 50.0}


def test_every_file_of_the_sample_is_in_one_part():
    files = read_files(data_folder())
    assert [len(part) for part in files] == [149, 10, 20]
    assert all(first.keys().isdisjoint(second) for first, second in combinations(files, 2))
    parts = read_parts(data_folder())
    assert [len(part) for part in parts] == [3_253, 143, 273]
    words = [{tree.words for tree in part} for part in parts]
    # the treebank itself repeats one sentence
    assert [len(first & second) for first, second in combinations(words, 2)] == [1, 0, 0]


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


def score(f1, sentences):
    return {"f1": f1, "interval": [f1 - 2.0, f1 + 3.0], "sentences": sentences}


def measurements():
    seeds = {
        f"{system}, seed {seed}": {
            "minutes": 20.0 + seed,
            "commit": f"of seed {seed}",
            "dev": score(f1 + seed, 273),
            "unseen": score(f1 + seed - 4.0, 143),
        }
        for system, f1 in (("hybrid", 84.0), ("lstm", 79.0), ("transformer", 73.0))
        for seed in (1, 2, 3)
    }
    grammars = {
        name: {"dev": score(f1, 273), "unseen": score(f1 + 1.0, 143)}
        for name, f1 in (("parents", 71.0), ("plain", 70.0))
    }
    pair = {"difference": 5.0, "interval": [2.0, 8.0]}
    pairs = [
        {"first": "hybrid", "second": "lstm", **pair},
        {"first": "transformer", "second": "parents", **pair, "interval": [-1.0, 11.0]},
        {"first": "parents", "second": "plain", **pair},
    ]
    return {
        "seeds": seeds,
        "grammar": {"commit": "of grammars", **grammars},
        "differences": {"pairs": pairs},
    }


def trees_of(*systems):
    return {f"{system}, seed {seed}, unseen": ["(S )S"] for system in systems for seed in (1, 2, 3)}


def page_of(measured, *systems):
    return body(Record("abc", "a machine", measured, outputs=trees_of(*systems)))


def test_seeds_are_one_row_with_both_deviations():
    page = page_of(measurements())
    assert "| `parsing-small-lstm` | 81.0 ± 2.5 | 1.0 | 77.0 ± 2.5 | 1.0 |" in page
    assert "| PCFG | 70.0 ± 2.5 |  | 71.0 ± 2.5 |  |" in page
    assert "273 sentences" in page
    assert "143 sentences" in page
    assert "F1 in training" not in page


def test_a_difference_without_a_sure_sign_ranks_no_parser():
    page = page_of(measurements())
    means = "with seed 3, and +5.0 between the means."
    assert f"`parsing-small` minus `parsing-small-lstm` is +5.0 (+2.0 to +8.0) {means}" in page
    doubt = "with seed 3, and -1.0 between the means, so the unseen sentences do not show which is"
    assert f"is +5.0 (-1.0 to +11.0) {doubt} better." in page
    assert "PCFG with parent annotation minus" not in page


def test_the_page_says_why_differences_are_those_of_a_single_seed():
    page = page_of(measurements(), "hybrid", "lstm")
    reason = "because the record has no trees of `parsing-small-transformer` with other seeds."
    assert f"are those of seed 3, {reason}" in page
    scores = "highest unseen F1 with this seed (seeds 1 to 3: 70.0, 71.0, 72.0)."
    assert f"`parsing-small-transformer` has its {scores}" in page
    assert "`parsing-small-lstm` has its" not in page
    complete = page_of(measurements(), *SYSTEMS)
    assert "are those of seed 3. `parsing-small` minus" in complete


def test_a_page_without_differences_announces_none():
    page = page_of({**measurements(), "differences": {}})
    assert "Differences" not in page
    assert ":\n" not in page


def test_differences_are_a_matrix_with_numbered_columns():
    lines = page_of(measurements()).splitlines()
    assert "|  | 2 | 3 | 4 | 5 |" in lines
    assert "| 1 `parsing-small` | +5.0 ± 3.0 |  |  |  |" in lines
    assert "| 3 `parsing-small-transformer` |  |  | +5.0 ± 6.0 |  |" in lines


def test_the_page_names_all_commits_and_times():
    page = page_of(measurements())
    named = "seeds of seed 1 and of seed 2 and of seed 3; grammar of grammars"
    assert f"Commits: {named}." in page
    assert "took 21 to 23 minutes" in page


def test_all_parsers_are_drawn(tmp_path):
    draw(score_rows(measurements()), tmp_path / "parsers.svg")
    picture = (tmp_path / "parsers.svg").read_text(encoding="utf-8")
    assert all(f">{name}<" in picture for name in ("parsing-small", "PCFG", "development"))


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
@pytest.mark.parametrize("name", ["hybrid, seed 1", *GRAMMARS])
def test_scores_of_parsers_follow_from_their_brackets(name):
    record = read("parsers")
    unseen = read_parts(data_folder()).unseen
    brackets = record.outputs[f"{name}, unseen"]
    trees = [
        delinearize(line.split(), gold.words, "vinyals", tags=gold.tags)
        for line, gold in zip(brackets, unseen, strict=True)
    ]
    scored = (record.measurements["seeds"] | record.measurements["grammar"])[name]["unseen"]
    assert score_trees(unseen, trees).f1 == pytest.approx(scored["f1"])


@pytest.mark.usefixtures("corpora")
def test_differences_of_parsers_follow_from_their_brackets():
    record = read("parsers")
    pairs = list(differences(record.outputs, read_parts(data_folder()).unseen))
    recorded = record.measurements["differences"]["pairs"]
    assert len(pairs) == len(recorded) == 10
    for pair, known in zip(pairs, recorded, strict=True):
        assert (pair["first"], pair["second"]) == (known["first"], known["second"])
        assert pair["interval"] == pytest.approx(known["interval"])
