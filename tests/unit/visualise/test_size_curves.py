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
    draw_size_curves(panels, out, ReportPage("Times", "All.", ("layer",), (("a layer",),)))
    drawn = out.read_text("utf-8")
    for text in ("4,096", ">512<", "milliseconds", "a layer"):
        assert text in drawn


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        ((1.06, 1.19), (">2<",)),
        ((2.58, 3.03), (">2<", ">3<")),
        ((0.0, 1e-9, 2e-9), (">0<",)),  # a zero has a place, too
        ((1.0, 1000.0), (">1<", ">1000<")),
    ],
)
def test_a_logarithmic_axis_has_numbers(tmp_path, values, numbers):
    sizes = tuple(range(1, len(values) + 1))
    panel = SizePanel("n", sizes, (SizeCurve("a layer", values),), "perplexity", "y")
    out = tmp_path / "drawn.svg"
    draw_size_curves([panel], out, ReportPage("All", "All.", ("layer",), (("a layer",),)))
    drawn = out.read_text("utf-8")
    assert all(number in drawn for number in numbers)
