import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.cleaning.filter import RULES, CleaningReport, DroppedPair, PairFilter


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        (1, 1, None),
        (10, 5, None),
        (11, 10, "too long"),
        (10, 11, "too long"),
        (0, 5, "empty"),
        (5, 0, "empty"),
        (0, 99, "empty"),
        (9, 4, "ratio"),
        (4, 9, "ratio"),
    ],
)
def test_a_pair_is_judged_by_its_lengths(source: int, target: int, reason: str | None) -> None:
    assert PairFilter(max_length=10, max_length_ratio=2.0).reason(source, target) == reason


def test_no_ratio_means_no_limit() -> None:
    assert PairFilter(max_length=1000, max_length_ratio=None).reason(1, 1000) is None


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 40), st.floats(1, 10))
def test_the_two_sides_are_treated_alike(
    source: int, target: int, max_length: int, max_length_ratio: float
) -> None:
    pair_filter = PairFilter(max_length, max_length_ratio)
    reason = pair_filter.reason(source, target)
    assert reason == pair_filter.reason(target, source)
    assert reason is None or reason in RULES


def test_the_summary_says_how_many_and_why() -> None:
    report = CleaningReport(28_990, {"empty": 3, "too long": 7, "ratio": 0})
    assert report.summary() == "28,990 pairs kept, 10 dropped (7 too long, 3 empty)"
    assert CleaningReport(1).summary() == "1 pair kept, 0 dropped"


@given(st.lists(st.sampled_from([None, *RULES])), st.integers(0, 40))
def test_parts_add_up_to_the_whole(reasons: list[str | None], cut: int) -> None:
    parts = [CleaningReport(), CleaningReport(), CleaningReport()]
    for line, reason in enumerate(reasons, start=1):
        for part in (parts[0], parts[1] if line <= cut else parts[2]):
            if reason is None:
                part.kept += 1
            else:
                part.drop(reason, line, f"source {line}", f"target {line}")
    whole = CleaningReport.merged(parts[1:])
    assert whole == CleaningReport.merged(parts[:1]) == CleaningReport.merged([parts[2], parts[1]])
    assert whole.kept + whole.total_dropped == len(reasons)
    for rule in RULES:
        lines = [line for line, reason in enumerate(reasons, start=1) if reason == rule]
        assert whole.dropped[rule] == len(lines)
        assert [example.line for example in whole.examples.get(rule, [])] == lines[:5]


def test_reports_do_not_share_their_counts() -> None:
    CleaningReport().drop("empty", 1, "", "x")
    assert CleaningReport().total_dropped == 0
    assert CleaningReport().examples == {}


def test_an_example_is_cut_short_and_cannot_command_a_terminal() -> None:
    report = CleaningReport(kept=3)
    report.drop("too long", 1_204, "long " * 1_000, "\x1b[2Jcourt\u202e")
    (example,) = report.examples["too long"]
    assert (example.line, example.source) == (1_204, "long " * 40)
    table = report.table()
    assert "too long              1   25.00%  a side has too many subwords" in table
    assert "line 1,204" in table
    assert "\ufffd[2Jcourt\ufffd" in table
    assert "\x1b" not in table


def test_the_readable_report_lists_every_rule_and_what_it_means() -> None:
    report = CleaningReport(kept=3, notes=["look", "warning: look twice"])
    report.drop("script", 7, "да", "oui")
    readable = report.readable()
    assert readable["pairs"] == 4
    assert [entry["rule"] for entry in readable["rules"]] == list(RULES)
    assert all(entry["drops"] for entry in readable["rules"])
    script = next(entry for entry in readable["rules"] if entry["rule"] == "script")
    assert script["examples"] == [{"line": 7, "source": "да", "target": "oui"}]
    assert readable["notes"] == ["look", "warning: look twice"]
    assert report.table().endswith("\n\nnote: look\n\nwarning: look twice")


def test_a_report_survives_json() -> None:
    counts = {"empty": 1, "a reason of later": 2}
    report = CleaningReport(5, counts, {"empty": [DroppedPair(3, "", "à")]}, ["a note"])
    assert CleaningReport.from_json(json.loads(json.dumps(report.to_json()))) == report
    assert CleaningReport.from_json({"kept": 5, "dropped": counts}) == CleaningReport(5, counts)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"kept": 1},
        {"kept": "x", "dropped": {}},
        {"kept": 1, "dropped": {}, "examples": {"empty": [{"line": 1}]}},
        {"kept": 1, "dropped": {}, "examples": {"empty": ["x"]}},
    ],
)
def test_a_damaged_report_is_refused(record: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        CleaningReport.from_json(record)
