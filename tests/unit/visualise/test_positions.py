from xml.etree import ElementTree

import numpy as np
import pytest

from heedful.errors import SettingError
from heedful.visualise.positions import PositionTable, position_pictures
from heedful.visualise.report_page import ReportPage
from heedful.visualise.scaling import theory_and_measurement

SHEET = ReportPage("Title", "Caption.", (("a", "b"), ("1", "2")))


def texts(svg):
    root = ElementTree.parse(svg).getroot()
    return ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]


def table(name, values):
    products = values @ values.T
    by_distance = np.array([np.diagonal(products, k).mean() for k in range(len(values))])
    return PositionTable(name, f"as {name}", values, products, by_distance / by_distance[0])


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "html"])
def test_positions_are_drawn_in_every_format(tmp_path, ending):
    tables = [table("index", np.arange(1.0, 6)[:, None]), table("one-hot", np.eye(5))]
    out = tmp_path / f"positions.{ending}"
    position_pictures(tables, out, SHEET)
    first = out.read_bytes()
    position_pictures(tables, out, SHEET)
    assert out.read_bytes() == first
    assert list(tmp_path.iterdir()) == [out]
    if ending == "svg":
        assert {"index", "as index", "one-hot", "dot products", "darkest: 25"} <= set(texts(out))


def test_positions_all_zero_and_a_single_one_can_be_drawn(tmp_path):
    one = PositionTable("z", "", np.zeros((2, 3)), np.zeros((2, 2)), np.array([1.0, 0.0]))
    position_pictures([one, table("one", np.ones((1, 1)))], tmp_path / "a.png", SHEET)
    with pytest.raises(ValueError, match="at least one"):
        position_pictures([], tmp_path / "b.png", SHEET)


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(SettingError, match="html"):
        theory_and_measurement([1], [], "", tmp_path / "a.gif", SHEET)
    with pytest.raises(SettingError, match="html"):
        position_pictures([], tmp_path / "a.gif", SHEET)
