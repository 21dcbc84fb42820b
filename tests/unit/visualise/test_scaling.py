from xml.etree import ElementTree

import numpy as np
import pytest

from heedful.visualise.report_page import ReportPage
from heedful.visualise.scaling import Curve, CurvePanel, theory_and_measurement

SHEET = ReportPage("Title", "Caption.", (("a", "b"), ("1", "2")))


def texts(svg):
    root = ElementTree.parse(svg).getroot()
    return ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]


def curve(name, *, theory=True):
    values = np.array([1.0, 0.5, 0.25])
    return Curve(name, values, values / 10, values if theory else None)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "html"])
def test_theory_and_measurement_are_drawn_in_every_format(tmp_path, ending):
    panels = [
        CurvePanel("variance", (curve("none"), curve("root"))),
        CurvePanel("reach", (curve("none", theory=False), curve("root", theory=False))),
    ]
    out = tmp_path / f"scaling.{ending}"
    theory_and_measurement([1, 2, 4], panels, "d_k", out, SHEET)
    assert list(tmp_path.iterdir()) == [out]
    if ending == "svg":
        written = texts(out)
        assert {"variance", "reach", "d_k"} <= set(written)
        assert written.count("none") == written.count("root") == 1
