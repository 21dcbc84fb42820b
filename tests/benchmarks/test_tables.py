"""Rows of Table 3 are added to the rows of earlier calls."""

import pytest
from benchmarks import tables
from benchmarks.report import read

from heedful.experiments.measured import MeasuredSystem
from heedful.paper.table3 import Table3


@pytest.mark.usefixtures("corpora")
@pytest.mark.parametrize("what", ["table3", "table3-long"])
def test_a_row_is_trained_again_and_the_others_stay(what, tmp_path, monkeypatch):
    record = read(what)
    here = {system["name"]: system for system in record.measurements["here"]}
    asked = {}

    def train_rows(_text, _out, _budget, **options):
        asked.update(options)
        return [MeasuredSystem.of(here[name]) for name in options["names"]]

    monkeypatch.setattr(tables, "train_rows", train_rows)
    monkeypatch.setattr(Table3, "draw", lambda _table, _out: None)
    make, budget = tables._MAKERS[what]
    call = tables.Call(tmp_path / what, budget, ["c-layers-2"], replan=False, record=record)
    measurements = make(call)
    assert asked["names"] == ["c-layers-2"]
    assert [system["name"] for system in measurements["here"]] == [*here]
    assert measurements["plan"] == record.measurements["plan"]
    assert "(C) 2 layers" not in measurements["commits"]
    assert measurements["commits"]["base"] in record.measurements["commits"].values()


@pytest.mark.parametrize(
    "words", [["table3-long", "--system", "c-lyers-2"], ["table1", "--replan"]]
)
def test_what_cannot_be_asked_is_refused_before_anything_is_written(
    words, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("sys.argv", ["tables", *words, "--runs", str(tmp_path / "runs")])
    with pytest.raises(SystemExit, match="2"):
        tables.main()
    told = capsys.readouterr().err
    assert ("--system must be one of base, a-1" in told) == ("--system" in words)
    assert not (tmp_path / "runs").exists()
