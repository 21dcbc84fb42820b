"""Small curves as SVG without a library."""

from xml.etree import ElementTree

import numpy as np
import pytest

from heedful.visualise.small_curves import SmallCurve, small_curves

SVG = "{http://www.w3.org/2000/svg}"


def curve(values, name="loss", **choices):
    values = np.array(values, dtype=float)
    return SmallCurve(name, np.arange(len(values)) * 10.0, values, "#0072b2", **choices)


def points(svg):
    """The places of each line, in pixels."""
    drawn = ElementTree.fromstring(svg)
    return [
        [tuple(map(float, place.split(","))) for place in line.get("points").split()]
        for line in drawn.iter(f"{SVG}polyline")
    ]


def test_a_falling_curve_goes_down_and_to_the_right():
    (line,) = points(small_curves([[curve([5, 3, 1])]]))
    across, down = zip(*line, strict=True)
    assert [*across] == sorted(across)
    assert [*down] == sorted(down)
    assert down[1] == pytest.approx((down[0] + down[2]) / 2, abs=0.1)


def test_curves_of_one_panel_share_their_scale():
    same, other = points(small_curves([[curve([1, 2]), curve([1, 2], "again")]]))
    assert same == other
    first, second = points(small_curves([[curve([1, 2])], [curve([1, 2])]]))
    assert [y for _, y in first] == [y for _, y in second]
    assert second[0][0] > first[-1][0]


def test_what_is_not_finite_is_left_out():
    (line,) = points(small_curves([[curve([5, np.nan, np.inf, 1])], [curve([np.nan])]]))
    assert len(line) == 2
    assert small_curves([[curve([np.nan])], [curve([])]]) == ""


def test_a_long_curve_has_no_more_points_than_pixels():
    (line,) = points(small_curves([[curve(range(100_000))]]))
    assert len(line) == 340


@pytest.mark.parametrize("values", [[0.0], [3.0, 3.0], [-2.0, -1.0], [1e-9, 2e-9], [1e12]])
def test_any_range_of_values_is_drawn_inside_the_picture(values):
    svg = small_curves([[curve(values, has_dots=True)]])
    for x, y in points(svg)[0]:
        assert 0 <= x <= 340
        assert 0 <= y <= 190
    assert len([*ElementTree.fromstring(svg).iter(f"{SVG}circle")]) == len(values)


def test_a_name_cannot_write_markup():
    svg = small_curves([[curve([1, 2], "<script>\x00&")]])
    (name,) = [
        text.text
        for text in ElementTree.fromstring(svg).iter(f"{SVG}text")
        if "script" in (text.text or "")
    ]
    assert name == "<script>\\x00&"
