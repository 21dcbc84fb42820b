"""Rows of Table 3 after longer trainings: their plan, and the page."""

import pytest
from benchmarks.report import measurements_of
from benchmarks.table3_long import ROWS, TIMES, LongRows, lengthen, long_rows

from heedful.config.load import load_config


@pytest.fixture
def rows() -> LongRows:
    """Rows whose longer trainings halve the perplexity, except (A) with 32 heads."""
    here = measurements_of("table3")["here"]
    longer = [
        system | {"steps": TIMES * system["steps"], "perplexity": system["perplexity"] / 2}
        for system in here
        if system["name"] in ("base", "a-1", "a-32")
    ]
    longer[-1]["perplexity"] = 5.0
    return long_rows(longer)


def test_schedules_are_stretched_with_the_steps():
    plan = measurements_of("table3")["plan"]
    longer = lengthen(plan)
    assert [system["name"] for system in longer["systems"]] == [row.name for row in ROWS]
    before, after = (
        load_config(plan["recipe"], tuple(plan["systems"][0]["settings"])).to_dict()["train"]
        for plan in (plan, longer)
    )
    stretched = {
        key: TIMES * before[key]
        for key in before
        if key != "precision" and before[key] != after[key]
    }
    precision = after.pop("precision")
    assert before.pop("precision") == "auto"
    assert precision in ("fp32", "bf16")
    assert sorted(stretched) == ["checkpoint_steps", "steps", "validate_steps", "warmup"]
    assert after == before | stretched


def test_stars_are_around_the_longer_base_row(rows):
    perplexity, _ = rows.noises
    base = rows.pairs[0][2]
    assert perplexity.mean == base.perplexity
    assert perplexity.margin == rows.table.noises[0].margin
    by_title = {row[0]: row[1:] for row in rows.rows[1:]}
    assert by_title["base"][1] == "10.2"
    assert by_title["(A) 1 head"][1] == "9.9"
    assert by_title["(A) 32 heads"][:2] == ("22.4", "5.0*")


def test_correlations_before_and_after(rows):
    # Published: 4.92, 5.29, 5.01; shorter 20.4, 19.8, 22.4; longer 10.2, 9.9, 5.0.
    assert "-0.50 and -0.50 for perplexity" in rows.verdict


def test_the_picture_has_all_rows(rows, tmp_path):
    rows.draw(tmp_path / "long.svg")
    drawn = (tmp_path / "long.svg").read_text()
    assert drawn.count("a-32") >= 2
