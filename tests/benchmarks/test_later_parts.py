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
    """Stand in for the longer trainings: the shorter seeds, with their plan lengthened."""
    recorded = measurements_of("table3")
    here = [system for system in recorded["here"] if system["name"].startswith("base")]
    plan = table3_long.lengthen(recorded["plan"])
    record = {"plan": plan, "here": here, "text": recorded["text"]}
    monkeypatch.setattr(later_parts, "measurements_of", lambda _name: record)
    table = table3_long.long_table(here, recorded["text"])
    monkeypatch.setattr(later_parts, "recorded_table", lambda: table)
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
    base, origin = longer["here"][0], {"commit": "abc", "machine": "m"}
    here = {
        "rotary": base | {"valid_bleu": base["valid_bleu"] + 0.5} | origin,
        "shaw": base | {"perplexity": base["perplexity"] - 2, "flops": 2 * base["flops"]} | origin,
    }
    page = body(Record("abc", "m", {"here": here}))
    lines = {line.split(" | ")[0]: line for line in page.splitlines() if "explain" in line}
    rotary = lines["| [rotary position embeddings](../explain/rotary.md)"]
    shaw = lines["| [relative position vectors](../explain/shaw.md)"]
    assert "*" not in rotary and "| 2.16 |" in rotary
    assert shaw.count("*") == 1 and "| 4.32 |" in shaw
    assert "the base row, 3 seeds" in page and "Measured at commit abc on m: rotary" in page
    assert "Not trained: gated feed-forward network" in page
