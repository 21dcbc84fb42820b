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
