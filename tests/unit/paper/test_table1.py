import re
from dataclasses import replace

import pytest

from heedful.errors import RunFolderError
from heedful.paper import table1
from heedful.paper.dependent_products import CountedProducts
from heedful.paper.layer_kinds import KINDS
from heedful.paper.table1 import Table1, make_table1
from heedful.runs.lock import only_writer
from tests.unit.paper.test_layer_times import times, unlike


def table(**changed):
    products = {name: CountedProducts(4, 1_000) for name in KINDS}
    return Table1(products, dict.fromkeys(KINDS, (8, 5)), times(**changed), {})


@pytest.mark.family("recurrent")
def test_the_page_has_formulas_counts_and_times(tmp_path):
    page = table().to_markdown()
    assert "| self-attention | n² · d | 1.34e+08 | 8.05e+08 | 1e+03 | 1 | 4 |" in page
    assert "times cross at n = 700 ± 0, and self-attention is faster below this size" in page
    assert "Costs are multiply-adds of one layer at n = 512, d = 512, k = 3 and r = 16. " in page
    assert "one sequence at k = 3 and r = 32, with 1 thread, 3 rounds and 95% " in page
    assert "4 counted steps (projections, scores, mixing, output), and 1 published step." in page
    assert "need more multiply-adds (1e+03) than its formula gives (5.46e+08)." in page
    assert "2.00 ± 0.00" in page
    numbers = table().to_dict()
    assert numbers["layers"][0]["powers"]["n"]["value"] > 1.99
    (crossing,) = numbers["crossings"]["n"].pop("sizes")
    assert numbers["crossings"]["n"] == {"faster_below": "self-attention", "rounds": 3}
    assert crossing == {"value": pytest.approx(700), "margin": pytest.approx(0)}
    assert numbers["crossings"]["d"]["sizes"] == []
    assert numbers["threads"] == 1
    table().draw(tmp_path / "table1.svg")
    assert "restricted self-attention" in (tmp_path / "table1.svg").read_text("utf-8")


@pytest.mark.family("recurrent")
def test_where_times_do_not_cross_that_is_said():
    found = table(power_n=1.0).conclusions[0]
    assert "in the measurement, self-attention is faster at every n from 128 to 2,048" in found
    assert "recurrence is faster at every n" in table(power_n=3.0).conclusions[0]


@pytest.mark.family("recurrent")
def test_rounds_that_do_not_agree_on_crossings_are_counted():
    found = replace(table(), times=unlike(2.0, 1.0, 2.0)).conclusions[0]
    assert "n = 700 ± 0 in 2 of 3 rounds, and self-attention" in found
    found = replace(table(), times=unlike(1.0, 2.0, 1.0)).conclusions[0]
    assert "self-attention is faster at every n from 128 to 2,048 in 2 of 3 rounds" in found
    none = replace(table(), times=unlike(2.0, 1.0, 3.0))
    assert "no two rounds agree on where the times cross" in none.conclusions[0]
    assert none.to_dict()["crossings"]["n"] is None
    assert "with 2 threads, 3 rounds" in none.to_markdown()


@pytest.mark.parametrize(
    ("budget", "rounds", "said"),
    [
        (
            0.01,
            3,
            r"This took \d+\.\d s, more than .* 0\.01 s, because at least 3 rounds are needed\.",
        ),
        (0.01, 4, r"This took \d+\.\d s, more than the budget of 0\.01 s\."),
        (1e6, 3, "costs were counted and paths were found"),  # nothing more
    ],
)
def test_a_budget_that_was_exceeded_is_said(tmp_path, monkeypatch, budget, rounds, said):
    monkeypatch.setattr(table1, "measure_layers", lambda *_: times(rounds=rounds))
    monkeypatch.setattr(table1, "COUNTED", replace(table1.COUNTED, n=32, d=32))
    lines = []
    make_table1(tmp_path, budget, say=lines.append)
    assert re.fullmatch(said, lines[-1])


def test_only_one_process_makes_the_table_in_a_folder(tmp_path):
    with (
        only_writer(tmp_path, "paper table1"),
        pytest.raises(RunFolderError, match=r"one writer at a time, but heedful paper table1 \("),
    ):
        make_table1(tmp_path, 1.0)
    assert not (tmp_path / "times.json").exists()
