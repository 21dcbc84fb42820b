"""Records of the paper's tables: what a call adds to them, and what a page shows of them."""

import pytest
from benchmarks import table_pages, tables
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


@pytest.mark.family("bytenet", "convs2s", "experts", "recurrent")
def test_the_page_lists_every_setting_that_differs_from_the_published_ones():
    plan = read("table2").measurements["plan"]
    listed = dict(
        zip(
            (system.name for system in table_pages.SYSTEMS),
            table_pages._recipe_differences(plan),
            strict=True,
        )
    )
    assert listed["gnmt"].startswith("| GNMT | recipe `gnmt` | here |")
    assert "| `model.d_model` | 1024 | 200 |" in listed["gnmt"]
    assert "| `train.guided_attention` | 0.0 | 1.0 |" in listed["gnmt"]
    assert "| `model.tie_embeddings` | none | all |" in listed["moe"]
    assert "`model.recurrent.direction`" not in listed["moe"]  # as published
    for table in listed.values():
        cells = [line.split(" | ")[1:] for line in table.splitlines()[2:]]
        assert cells
        assert all(published != here.removesuffix(" |") for published, here in cells)
