"""Later parts of the Transformer: planned as the base row, and compared with it."""

import pytest
from benchmarks import later_parts, table3_long
from benchmarks.later_parts import PARTS, body, plan_of
from benchmarks.report import measurements_of

from heedful.config.load import load_config
from heedful.experiments.record import Record
from heedful.paper.table3 import RECIPE


@pytest.fixture(autouse=True)
def longer(monkeypatch):
    """Stand in for the longer trainings: the shorter ones, with their plan lengthened."""
    recorded = measurements_of("table3")
    record = {"plan": table3_long.lengthen(recorded["plan"]), "here": recorded["here"][:1]}
    monkeypatch.setattr(later_parts, "measurements_of", lambda _name: record)
    return record


def test_a_part_changes_only_its_settings(longer):
    base = longer["plan"]["systems"][0]
    for name, part in PARTS.items():
        (planned,) = plan_of(name).systems
        assert planned.steps == base["steps"]
        with_part, without = (
            load_config(RECIPE, settings).to_dict()
            for settings in (planned.settings, tuple(base["settings"]))
        )
        assert with_part["train"] == without["train"]
        assert with_part["data"] == without["data"]
        assert with_part["model"] != without["model"], part.title


def test_parts_that_save_no_weights_have_as_many():
    weights = {name: plan_of(name).systems[0].parameters for name in PARTS}
    assert weights["rotary"] == weights["shared-layers"] == weights["attention-dropout"]
    assert abs(weights["gated"] / weights["rotary"] - 1) < 2e-3
    assert weights["one-key"] < weights["two-keys"] < weights["rotary"]


def test_a_row_is_marked_beyond_the_noise_of_seeds(longer):
    base = longer["here"][0]
    here = {
        "rotary": base | {"name": "rotary", "commit": "abc", "machine": "m"},
        "shaw": base | {"perplexity": base["perplexity"] - 2, "commit": "abc", "machine": "m"},
    }
    page = body(Record("abc", "m", {"here": here}))
    lines = {line.split(" | ")[0]: line for line in page.splitlines() if "explain" in line}
    assert "*" not in lines["| [rotary position embeddings](../explain/rotary.md)"]
    assert lines["| [relative position vectors](../explain/shaw.md)"].count("*") == 1
    assert "Not trained: gated feed-forward network" in page
