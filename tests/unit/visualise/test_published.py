from heedful.visualise.published import PublishedPanel, PublishedPoint, draw_published
from heedful.visualise.report_page import ReportPage


def test_every_row_is_named_in_every_panel(tmp_path):
    points = (PublishedPoint("base", 25.8, 30.1), PublishedPoint("big", 26.4, 31.0))
    panels = [PublishedPanel(title, points, (29.0, 31.0)) for title in ("BLEU", "perplexity")]
    out = tmp_path / "published.html"
    draw_published(panels, out, ReportPage("Rows", "All rows.", ("row",), (("base",),)))
    drawn = out.read_text("utf-8")
    assert drawn.count(">base<") >= 2
    assert "BLEU" in drawn
    assert "perplexity" in drawn
