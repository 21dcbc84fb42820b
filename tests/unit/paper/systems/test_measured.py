import json
from dataclasses import asdict

import pytest

from heedful.paper.systems.measured import MeasuredSystem, at_cost


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
