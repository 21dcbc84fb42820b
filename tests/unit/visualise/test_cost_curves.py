import pytest

from heedful.errors import SettingError
from heedful.visualise.cost_curves import CostCurve, draw_cost_curves
from heedful.visualise.report_page import ReportPage

SHEET = ReportPage("Costs", "What they cost.", (("a",), ("1",)))
CURVES = [
    CostCurve("low", (1e9, 1e10), (1.0, 2.0)),
    CostCurve("high", (1e9, 1e10), (1.0, 9.0)),
    CostCurve("alone", (5e9,), (4.0,)),
]


def test_the_legend_goes_from_the_best_to_the_worst(tmp_path):
    out = tmp_path / "costs.svg"
    draw_cost_curves(CURVES, "operations", "BLEU", out, SHEET)
    drawn = out.read_text("utf-8")
    places = [drawn.index(name) for name in ("high, 9.0", "alone, 4.0", "low, 2.0")]
    assert places == sorted(places)
    assert "operations" in drawn


def test_seeds_are_averaged_at_the_points_that_all_have():
    curve = CostCurve.mean("seeds", [[1e9, 1e10, 1e11], [3e9, 3e10]], [[1.0, 2.0, 9.0], [3.0, 6.0]])
    assert (curve.costs, curve.values) == ((2e9, 2e10), (2.0, 4.0))
    assert (curve.low, curve.high) == ((1.0, 2.0), (3.0, 6.0))
    alone = CostCurve.mean("alone", [[1e9, 1e10]], [[1.0, 2.0]])
    assert alone == CostCurve("alone", (1e9, 1e10), (1.0, 2.0))


def test_the_range_of_seeds_is_a_band(tmp_path):
    drawn = []
    for name, values in (("one", [[1.0, 2.0]]), ("two", [[1.0, 2.0], [2.0, 3.0]])):
        out = tmp_path / f"{name}.svg"
        curve = CostCurve.mean(name, [[1e9, 1e10]] * len(values), values)
        draw_cost_curves([curve], "operations", "BLEU", out, SHEET)
        drawn.append("PolyCollection" in out.read_text("utf-8"))
    assert drawn == [False, True]


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(SettingError, match="has the ending"):
        draw_cost_curves(CURVES, "x", "y", tmp_path / "costs.txt", SHEET)
