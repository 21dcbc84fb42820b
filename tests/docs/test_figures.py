"""Measured figures are those of the JSON that was measured."""

import json

import pytest
from benchmarks import figures
from benchmarks.report import RESULTS, ROOT


@pytest.fixture(scope="module")
def pages():
    """The texts as the records say them, by the path of the page."""
    return figures.texts()


def test_pages_say_what_was_measured(pages):
    for path, text in pages.items():
        assert path.read_text("utf-8") == text, f"{path}: run `make figures`"


def test_every_result_has_its_json_and_every_mark_is_whole(pages):
    for page in RESULTS.glob("*.md"):
        assert page in pages
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = path.read_text("utf-8")
        marks = text.count("<!--")
        assert marks == 2 * len(figures._MARK.findall(text)), path
        assert marks == 0 or path in pages


def test_a_figure_that_differs_is_written_anew_and_an_unknown_one_is_refused():
    known = {"quickstart.bleu": "99.2"}
    text = "BLEU **<!--quickstart.bleu-->99.9<!--/-->** of 100"
    assert figures.fill_in(text, known) == text.replace("99.9", "99.2")
    with pytest.raises(SystemExit, match=r"no figure quickstart\.blue"):
        figures.fill_in("<!--quickstart.blue-->1<!--/-->", known)


def test_every_record_names_its_commit_day_and_machine():
    records = [json.loads(path.read_text("utf-8")) for path in RESULTS.rglob("*.json")]
    for record in records:
        parts = [record] if "measurements" in record else [*record.values()]
        for part in parts:
            assert {"commit", "date", "machine", "measurements"} <= part.keys()
