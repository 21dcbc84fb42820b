import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.clean import REASONS, CleaningReport, PairFilter


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
    assert PairFilter(max_length=10, max_ratio=2.0).reason(source, target) == reason


def test_no_ratio_means_no_limit() -> None:
    assert PairFilter(max_length=1000, max_ratio=None).reason(1, 1000) is None


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 40), st.floats(1, 10))
def test_the_two_sides_are_treated_alike(
    source: int, target: int, max_length: int, max_ratio: float
) -> None:
    pair_filter = PairFilter(max_length, max_ratio)
    reason = pair_filter.reason(source, target)
    assert reason == pair_filter.reason(target, source)
    assert reason is None or reason in REASONS


def test_the_summary_says_how_many_and_why() -> None:
    report = CleaningReport(28_990, {"empty": 3, "too long": 7, "ratio": 0})
    assert report.summary() == "28,990 pairs kept, 10 dropped (7 too long, 3 empty)"
    assert CleaningReport(1).summary() == "1 pair kept, 0 dropped"


@given(st.lists(st.sampled_from([None, *REASONS])))
def test_every_pair_is_counted_once(reasons: list[str | None]) -> None:
    report = CleaningReport()
    kept = [report.count(reason) for reason in reasons]
    assert kept == [reason is None for reason in reasons]
    assert report.kept == sum(kept)
    assert report.kept + report.total_dropped == len(reasons)
    assert all(report.dropped[reason] == reasons.count(reason) for reason in REASONS)


def test_reports_do_not_share_their_counts() -> None:
    CleaningReport().count("empty")
    assert CleaningReport().total_dropped == 0


def test_a_report_survives_json() -> None:
    report = CleaningReport(5, {"empty": 1, "a reason of later": 2})
    assert CleaningReport.from_json(report.to_json()) == report


@pytest.mark.parametrize("record", [{}, {"kept": 1}, {"kept": "x", "dropped": {}}])
def test_a_damaged_report_is_refused(record: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        CleaningReport.from_json(record)
