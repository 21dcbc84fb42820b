import json

import pytest

from heedful.paper.claims.statement import Checked, between, every, mean_curve, sign
from heedful.visualise.size_curves import SizeCurve, SizePanel


def test_it_is_read_as_it_was_written():
    curves = (
        SizeCurve("one", (1.0, 2.5)),
        SizeCurve("two", (0.001, 1e6)),
        SizeCurve("BLEU", (1020.0, 3.0)),
    )
    panels = (
        SizePanel("n", (8, 1024), curves[:2], "seconds"),
        SizePanel("words", (3, 4), curves[2:], "BLEU", "none"),
    )
    checked = Checked(True, "So it is.", panels)
    assert Checked.of(json.loads(json.dumps(checked.to_dict()))) == checked
    assert checked.headline(0, -1) == "Seconds (n: 1,024): one 2.5, two 1e+06."
    assert checked.headline(1, 0) == "BLEU (words: 3): 1,020."
    assert checked.tables == [
        [
            ("n", "seconds: one", "seconds: two"),
            ("8", "1", "0.001"),
            ("1,024", "2.5", "1e+06"),
        ],
        [("words", "BLEU"), ("3", "1,020"), ("4", "3")],
    ]


def test_means_and_margins_are_computed_from_the_repeats_of_a_file():
    curve = mean_curve("one", [(1.0, 3.0), (2.0, 2.0)])
    assert (curve.values, curve.margins) == ((2.0, 2.0), (pytest.approx(12.706), 0.0))
    checked = Checked(True, "So it is.", (SizePanel("n", (8, 16), (curve,), "seconds"),))
    plain = json.loads(json.dumps(checked.to_dict()))
    plain["panels"][0] |= {"curves": {"one": [0.0, 0.0]}, "margins": {}}
    assert Checked.of(plain) == checked


@pytest.mark.parametrize(
    "damage",
    [
        {"holds": "yes"},
        {"holds": 1},
        {"sentence": None},
        {"panels": []},
        {"panels": "n"},
        {"sizes": [8, 16, 32]},
        {"sizes": [8, "16"]},
        {"axis": 8},
        {"label": None},
        {"logarithmic": "z"},
        {"curves": {"one": [1.0]}},
        {"curves": {"one": [1.0, "2.5"]}},
        {"curves": [[1.0, 2.5]]},
        {"margins": {"one": [0.1]}},
        {"margins": {"one": [0.1, None]}},
        {"margins": None},
        {"repeats": {"one": [[1.0], [2.0]]}},
        {"repeats": {"one": [[1.0, 2.0]]}},
        {"repeats": {"one": [[1.0, 2.0], [1.0, None]]}},
    ],
)
def test_damaged_numbers_are_refused(damage):
    curve = SizeCurve("one", (1.0, 2.5), (0.1, 0.2))
    plain = Checked(None, "Perhaps.", (SizePanel("n", (8, 16), (curve,), "seconds"),)).to_dict()
    (name,) = damage
    damaged = plain if name in plain else plain["panels"][0]
    damaged.update(damage)
    with pytest.raises((ValueError, TypeError, AttributeError)):
        Checked.of(plain)


@pytest.mark.parametrize(
    ("intervals", "decided"),
    [
        ([(0.1, 2.0), (0.5, 1.0)], True),
        ([(0.1, 2.0), (-0.5, 1.0)], None),
        ([(0.1, 2.0), (-0.5, 1.0), (-2.0, -1.0)], False),
    ],
)
def test_intervals_decide_where_none_has_zero_in_it(intervals, decided):
    assert every([sign(interval) for interval in intervals]) is decided


@pytest.mark.parametrize(
    ("evidence", "decided"),
    [
        ((True, None), True),
        ((None, False), False),
        ((None, True), None),
        ((False, None), None),
    ],
)
def test_a_stricter_comparison_holds_and_a_milder_one_refutes(evidence, decided):
    assert between(evidence) is decided
