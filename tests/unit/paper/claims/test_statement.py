import json
import math

import pytest

from heedful.experiments.estimate import Estimate
from heedful.paper.claims.statement import (
    Checked,
    Measured,
    PaperClaim,
    between,
    every,
    mean_curve,
    say_times,
    sign,
)
from heedful.visualise.size_curves import SizeCurve, SizePanel


def test_it_is_read_as_it_was_written():
    curves = (
        SizeCurve("one", (1.0, 2.5)),
        SizeCurve("two", (0.001, 1e6)),
        SizeCurve("BLEU", (100.00000000000004, 0.101)),
        SizeCurve("seconds", (1020.4, 99.99)),
    )
    panels = (
        SizePanel("n", (8, 1024), curves[:2], "seconds"),
        SizePanel("words", (3, 4), curves[2:3], "BLEU", "none"),
        SizePanel("words", (3, 4), curves[3:], "seconds", "none"),
    )
    checked = Checked(True, "All of 4.", "So it is.", panels)
    assert Checked.of(json.loads(json.dumps(checked.to_dict()))) == checked
    assert checked.tables == [
        (
            "Seconds",
            [("n", "one", "two"), ("8", "1", "0.00100"), ("1,024", "2.50", "1.00e+06")],
        ),
        ("BLEU", [("words", "BLEU"), ("3", "100.0"), ("4", "0.1")]),
        ("Seconds", [("words", "seconds"), ("3", "1,020"), ("4", "100")]),
    ]


@pytest.mark.parametrize(
    ("sentence", "headline"),
    [
        ("The ratio is 2.5. The claim holds above 2.", "The ratio is 2.5."),
        ("So it is.", "So it is."),
    ],
)
def test_a_verdict_without_a_headline_has_the_first_sentence_of_its_evidence(sentence, headline):
    panel = SizePanel("n", (8,), (SizeCurve("one", (1.0,)),), "seconds")
    checked = Checked(True, headline, sentence, (panel,))
    older = checked.to_dict()
    del older["headline"]
    assert Checked.of(older) == checked


def test_means_and_margins_are_computed_from_the_repeats_of_a_file():
    curve = mean_curve("one", [(1.0, 3.0), (2.0, 2.0)])
    assert (curve.values, curve.margins) == ((2.0, 2.0), (pytest.approx(12.706), 0.0))
    panel = SizePanel("n", (8, 16), (curve,), "seconds")
    checked = Checked(True, "All of 4.", "So it is.", (panel,))
    plain = json.loads(json.dumps(checked.to_dict()))
    plain["panels"][0] |= {"curves": {"one": [0.0, 0.0]}, "margins": {}}
    assert Checked.of(plain) == checked


@pytest.mark.parametrize(
    "damage",
    [
        {"holds": "yes"},
        {"holds": 1},
        {"headline": None},
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
    panel = SizePanel("n", (8, 16), (curve,), "seconds")
    plain = Checked(None, "Half of 4.", "Perhaps.", (panel,)).to_dict()
    (name,) = damage
    damaged = plain if name in plain else plain["panels"][0]
    damaged.update(damage)
    with pytest.raises((ValueError, TypeError, AttributeError)):
        Checked.of(plain)


def decide(rule, evidence):
    """The verdict of evidence, and the piece of evidence whose headline is shown."""
    said = [str(place) for place in range(len(evidence))]
    checked = PaperClaim("n", "", "", lambda: Measured(evidence, said, "", ()), rule=rule).check()
    return checked.holds, int(checked.headline)


@pytest.mark.parametrize(
    ("intervals", "decided"),
    [
        ([(0.1, 2.0), (0.5, 1.0)], (True, 0)),
        ([(0.1, 2.0), (-0.5, 1.0), (-0.1, 1.0)], (None, 1)),
        ([(0.1, 2.0), (-0.5, 1.0), (-2.0, -1.0)], (False, 2)),
        ([(-0.5, 1.0)], (None, 0)),
    ],
)
def test_intervals_decide_where_none_has_zero_in_it(intervals, decided):
    assert decide(every, [sign(interval) for interval in intervals]) == decided


@pytest.mark.parametrize(
    ("evidence", "decided"),
    [
        ((True, True), (True, 0)),
        ((True, None), (True, 0)),
        ((True, False), (True, 0)),
        ((None, True), (None, 0)),
        ((None, None), (None, 0)),
        ((None, False), (False, 1)),
        ((False, False), (False, 1)),
    ],
)
def test_a_stricter_comparison_holds_and_a_milder_one_refutes(evidence, decided):
    assert decide(between, evidence) == decided


def test_a_ratio_has_the_interval_of_its_logarithm():
    ratio = Estimate(math.log(2), math.log(1.5))
    assert say_times(ratio, "the time") == "2.0 times the time (1.3 to 3.0)"
