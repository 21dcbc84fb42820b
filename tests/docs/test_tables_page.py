"""The page of the paper's tables is written from the results of any machine."""

import json

from benchmarks import tables
from tests.unit.paper.test_table1 import table


def test_table_1_says_at_which_sizes_and_with_how_many_threads(tmp_path, monkeypatch):
    made, given = table(), []

    def make(*_, **options):
        given.append(options["threads"])
        return made

    monkeypatch.setattr(tables, "make_table1", make)
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    found = json.loads(json.dumps(tables._table1(tmp_path)))
    assert given == [1]
    page = tables._layers(found)
    assert page.startswith(made.count_heading)
    assert made.time_heading in page
    assert all(conclusion in page for conclusion in made.conclusions)
    assert found["crossings"] == made.to_dict()["crossings"]
    assert found["layers"][0]["powers"]["n"]["value"] > 1.99
    assert (tmp_path / "table1.svg").exists()


def test_only_earlier_commits_are_named():
    record = {"commit": "d349f04", "found": {"commits": {"mask": "d349f04", "heads": "143b61e"}}}
    said = tables._earlier_commits(record, "Decided")
    assert said == ["Decided at an earlier commit, at 143b61e: heads."]
    del record["found"]["commits"]["heads"]
    assert tables._earlier_commits(record, "Decided") == []


def test_other_machines_are_named_too():
    record = {
        "commit": "d349f04",
        "machine": "Here",
        "found": {
            "commits": {"mask": "d349f04", "heads": "143b61e"},
            "machines": {"mask": "There", "heads": "Here"},
        },
    }
    assert tables._earlier_commits(record, "Decided") == [
        "Decided at an earlier commit, at 143b61e: heads.",
        "Decided on another machine, on There: mask.",
    ]
    assert tables._machines(record | {"machine": "Now"}, ["mask", "scores"]) == {
        "mask": "There",
        "scores": "Now",
    }
