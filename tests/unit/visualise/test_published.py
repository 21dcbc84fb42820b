from heedful.visualise.published import PublishedPanel, PublishedPoint, _draw, draw_published
from heedful.visualise.report_page import ReportPage


def test_every_row_is_named_in_every_panel(tmp_path):
    points = (PublishedPoint("base", 25.8, 30.1), PublishedPoint("big", 26.4, 31.0))
    panels = [PublishedPanel(title, points, (29.0, 31.0)) for title in ("BLEU", "perplexity")]
    out = tmp_path / "published.html"
    draw_published(panels, out, ReportPage("Rows", "All rows.", (("row",), ("base",))))
    drawn = out.read_text("utf-8")
    assert drawn.count(">base<") >= 2
    assert "BLEU" in drawn
    assert "perplexity" in drawn


def test_names_are_beside_each_other_or_beside_their_point():
    points = [PublishedPoint(f"row-{n}", 4.9 + 0.01 * n, 20.0 + 0.1 * n) for n in range(9)]
    points += [PublishedPoint(f"same-{n}", 6.0, 30.0) for n in range(60)]
    (axes,) = _draw([PublishedPanel("perplexity", tuple(points), (19.0, 21.0))]).axes
    drawn = {text.get_text(): text.get_position() for text in axes.texts}
    assert len(drawn) == len(points)
    apart = [drawn[f"row-{n}"] for n in range(9)]
    assert len(set(apart)) > 1
    assert (4.0, 2.0) in {drawn[f"same-{n}"] for n in range(60)}
