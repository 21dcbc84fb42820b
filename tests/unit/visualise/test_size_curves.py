import re

import pytest

from heedful.visualise.report_page import ReportPage
from heedful.visualise.size_curves import SizeCurve, SizePanel, draw_size_curves


def test_each_panel_has_its_own_sizes(tmp_path):
    curves = (SizeCurve("a layer", (1.0, 2.0), (0.0, 1.0)), SizeCurve("another", (3.0, 5.0)))
    panels = [
        SizePanel("n", (128, 4096), curves, "milliseconds"),
        SizePanel("d", (64, 512), curves, "milliseconds"),
    ]
    out = tmp_path / "times.svg"
    draw_size_curves(panels, out, ReportPage("Times", "All.", (("layer",), ("a layer",))))
    drawn = out.read_text("utf-8")
    for text in ("4,096", ">512<", "milliseconds", "a layer"):
        assert text in drawn


@pytest.mark.parametrize(
    "values",
    [
        (1.06, 1.19),
        (2.58, 3.03),
        (0.0, 1e-9, 2e-9),
        (0.0, 2.6, 3.0),
        (0.0, 1e-3, 1.0),
        (1.0, 1000.0),
        (7.0, 20.0),
    ],
)
def test_a_logarithmic_axis_has_numbers(tmp_path, values):
    sizes = tuple(range(5000, len(values) + 5000))  # the numbers of the other axis
    panel = SizePanel("n", sizes, (SizeCurve("a layer", values),), "perplexity", "y")
    out = tmp_path / "drawn.svg"
    draw_size_curves([panel], out, ReportPage("All", "All.", (("layer",), ("a layer",))))
    numbers = map(float, re.findall(r">([0-9.]+(?:e-?[0-9]+)?)<", out.read_text("utf-8")))
    low, high = 0.9 * min(values), 1.1 * max(values)
    shown = {number for number in numbers if low <= number <= high}
    assert len(shown) >= 2
    assert min(values) > 0 or 0 in shown  # a zero has a place, too
