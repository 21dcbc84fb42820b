"""The page of the paper's tables is written from the results of any machine."""

import json

from benchmarks import table_pages, tables
from tests.unit.paper.test_table1 import table

from heedful.experiments.record import Record
from heedful.paper.table1 import COUNT_HEADING


def test_table_1_says_at_which_sizes_and_with_how_many_threads(tmp_path, monkeypatch):
    made, given = table(), []

    def make(*_, **options):
        given.append(options["threads"])
        return made

    monkeypatch.setattr(tables, "make_table1", make)
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    call = tables.Call(tmp_path, 1.0, [], replan=False, record=None)
    measurements = json.loads(json.dumps(tables._table1(call)))
    assert given == [1]
    page = table_pages.table1(Record("abc", "a machine", measurements))
    assert COUNT_HEADING in page
    assert made.time_heading in page
    assert all(conclusion in page for conclusion in made.conclusions)
    assert measurements["crossings"] == made.to_dict()["crossings"]
    assert measurements["layers"][0]["powers"]["n"]["value"] > 1.99
    assert (tmp_path / "table1.svg").exists()


def test_only_earlier_commits_are_named():
    commits = {"mask": "d349f04", "heads": "143b61e"}
    record = Record("d349f04", "Here", {"commits": commits})
    sentences = ["Decided at the earlier commit 143b61e: heads."]
    assert table_pages._earlier_origins(record, "Decided") == sentences
    del commits["heads"]
    assert table_pages._earlier_origins(record, "Decided") == []


def test_other_machines_are_named_too():
    origins = {
        "commits": {"mask": "d349f04", "heads": "143b61e"},
        "machines": {"mask": "There", "heads": "Here"},
    }
    assert table_pages._earlier_origins(Record("d349f04", "Here", origins), "Decided") == [
        "Decided at the earlier commit 143b61e: heads.",
        "Decided on another machine, There: mask.",
    ]
    record = Record("d349f04", "Now", origins)
    machines = tables._origins(record, ["mask", "scores"])["machines"]
    assert machines == {"mask": "There", "scores": "Now"}
