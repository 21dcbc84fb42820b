"""Rows of Table 3 after longer trainings: their plan, and the page."""

import pytest
from benchmarks.report import measurements_of
from benchmarks.table3_long import ROWS, TIMES, body, lengthen, long_table

from heedful.config.load import load_config
from heedful.experiments.record import Record

STRETCHED = ["checkpoint_steps", "steps", "validate_steps", "warmup"]


@pytest.fixture
def measurements():
    """Stand-ins for longer trainings: rows of Table 3, of which (A) with 32 heads is best."""
    recorded = measurements_of("table3")
    here = [
        system | {"steps": TIMES * system["steps"], "perplexity": system["perplexity"] / 2}
        for system in recorded["here"]
        if system["name"] in ("base", "base-2", "base-3", "a-1", "a-32", "c-layers-2")
    ]
    better = {"perplexity": 5.0, "valid_bleu": 40.0}
    here = [system | (better if system["name"] == "a-32" else {}) for system in here]
    return {"here": here, "text": recorded["text"], "plan": lengthen(recorded["plan"])}


def test_schedules_are_stretched_with_the_steps():
    plan = measurements_of("table3")["plan"]
    longer = lengthen(plan)
    assert {system["name"] for system in longer["systems"]} == {row.name for row in ROWS}
    before, after = (
        load_config(plan["recipe"], tuple(plan["systems"][0]["settings"])).to_dict()["train"]
        for plan in (plan, longer)
    )
    precision = after.pop("precision")
    assert before.pop("precision") == "auto"
    assert precision in ("fp32", "bf16")
    stretched = {key: TIMES * before[key] for key in before if before[key] != after[key]}
    assert sorted(stretched) == STRETCHED
    assert after == before | stretched


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_precision_of_a_plan_stays(precision):
    system = {
        "name": "base",
        "steps": 8,
        "settings": ["train.steps=8", f"train.precision={precision}"],
    }
    (longer,) = lengthen({"systems": [system], "budget": 1.0})["systems"]
    assert longer["settings"] == ["train.steps=32", f"train.precision={precision}"]


def test_stars_are_around_the_longer_seeds(measurements):
    table = long_table(measurements["here"], measurements["text"])
    perplexity, _ = table.noises
    seeds = [system.perplexity for system in table.seeds]
    assert len(seeds) == 3
    assert perplexity.mean == pytest.approx(sum(seeds) / 3)
    by_title = {row[0]: row for row in table.rows}
    assert by_title["(A) 1 head"][2] == "9.92"
    assert by_title["(A) 32 heads"][2] == "5.00*"


def test_the_page_names_what_is_missing_and_no_row_of_the_shorter_table(measurements):
    page = body(Record("abc", "m", measurements), ["Trained on another machine."])
    assert "four times as many steps, 4,048" in page
    assert "Not trained: (A) 4 heads; (A) 16 heads; (C) 4 layers;" in page
    assert "(D)" not in page and "(B)" not in page and "big" not in page
    assert "Trained on another machine." in page


def test_correlations_are_of_the_longer_trainings(measurements):
    # Published perplexity 4.92, 5.29, 5.01, 6.11; here 10.2, 9.9, 5.0, 11.0.
    table = long_table(measurements["here"], measurements["text"])
    assert table.correlations[0] == pytest.approx(0.4)
    # Published BLEU 25.8, 24.9, 25.4, 23.7; here 21.8, 22.5, 40, 20.9.
    assert table.correlations[1] == pytest.approx(0.4)
