from heedful.visualise.layer_times import TimeCurve, TimePanel, draw_layer_times
from heedful.visualise.report_page import ReportPage


def test_each_panel_has_its_own_sizes(tmp_path):
    curves = (TimeCurve("a layer", (0.001, 0.002), (0.0, 0.001)),)
    panels = [TimePanel("n", (128, 4096), curves), TimePanel("d", (64, 512), curves)]
    out = tmp_path / "times.svg"
    draw_layer_times(panels, out, ReportPage("Times", "All.", ("layer",), (("a layer",),)))
    drawn = out.read_text("utf-8")
    for text in ("4,096", ">512<", "milliseconds", "a layer"):
        assert text in drawn
