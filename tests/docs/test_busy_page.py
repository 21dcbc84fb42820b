"""The page about a busy machine is written from the counts of any machine."""

from benchmarks import busy_machine, figures, report
from benchmarks.busy_machine import COMMAND, PYTHON, SHORT, UNTOUCHED

from heedful.experiments.record import Record

STEPS = {
    UNTOUCHED: {"alone": [90, 110, 100], "busy": [4, 9, 5]},
    PYTHON: {"alone": [101, 99, 100], "busy": [40, 60, 50]},
    SHORT: {"alone": [1200, 99, 100], "busy": [60, 60, 60]},
    COMMAND: {"alone": [100, 100, 100], "busy": [5, 5, 5]},
}


def test_the_page_states_medians_ranges_and_ratios():
    measurements = {"cores": 2, "busy": 4, "seconds": 30.0, "steps": STEPS}
    page = busy_machine.body(Record("abc", "a machine", measurements))
    assert f"| {UNTOUCHED} | 100 (90-110) | 5 (4-9) | 1.0 |" in page
    assert f"| {PYTHON} | 100 (99-101) | 50 (40-60) | 10.0 |" in page
    assert f"| {SHORT} | 100 (99-1,200) | 60 (60-60) | 12.0 |" in page
    assert "take turns; each number of steps is the median of 3 runs" in page


def test_what_was_not_measured_yet_has_no_page(monkeypatch, tmp_path):
    names = [path.stem for path in figures.RESULTS.glob("*.json")]
    for path in figures.RESULTS.rglob("*"):
        copy = tmp_path / path.relative_to(figures.RESULTS)
        if path.is_dir():
            copy.mkdir()
        elif path.name != "parts.json":
            copy.write_bytes(path.read_bytes())
    assert "parts" in names
    for module in (figures, report):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
    assert "parts" not in figures.results()
