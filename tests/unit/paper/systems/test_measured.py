import json
from dataclasses import asdict

import pytest

from heedful.paper.systems.measured import MeasuredSystem, _after, at_cost


@pytest.mark.parametrize(
    ("kind", "cost", "bleu"),
    [
        ("seconds", 200.0, 10.0),
        ("seconds", 300.0, 15.0),
        ("seconds", 100.0, 5.0),
        ("flops", 2e11, 20.0),
    ],
)
def test_bleu_is_read_off_the_curve(make, kind, cost, bleu):
    assert at_cost(make("one").curve, kind, cost) == pytest.approx(bleu)


def test_it_is_read_as_it_was_written(make):
    one = make("one")
    assert MeasuredSystem.of(json.loads(json.dumps(asdict(one)))) == one


def test_a_curve_begins_with_that_of_the_training_it_went_on_from(make):
    first = make("one").curve
    whole = _after(first, first)
    assert whole[: len(first)] == first
    assert (whole[-1].step, whole[-1].seconds) == (2 * first[-1].step, 2 * first[-1].seconds)
    for kind in ("seconds", "flops"):
        spent = getattr(first[-1], kind)
        assert at_cost(whole, kind, spent) == at_cost(first, kind, spent)
