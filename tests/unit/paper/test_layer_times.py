import json
import math

import numpy as np
import pytest

from heedful.errors import RunFolderError
from heedful.paper import layer_times
from heedful.paper.layer_kinds import KINDS
from heedful.paper.layer_times import LENGTHS, WIDTHS, LayerTimes, measure_layers, points


def times(power_n=2.0, power_d=1.0, unit=1e-6, rounds=3):
    """Times that grow by given powers; self-attention alone with the square of n."""
    found = {}
    for name, axis, size, _ in points():
        power = {"n": power_n if name == "self-attention" else 1.0, "d": power_d}[axis]
        scale = 700.0 if axis == "n" and name != "self-attention" else 1.0
        found[f"{name}, {axis}={size}"] = scale * unit * size**power
    return LayerTimes(tuple(found for _ in range(rounds)), 1)


def unlike(*powers):
    """Rounds in each of which the times of self-attention grow by another power of n."""
    return LayerTimes(tuple(times(power).rounds[0] for power in powers), 2)


@pytest.mark.family("recurrent")
def test_powers_and_crossovers_are_those_of_the_times():
    found = times()
    assert found.exponent("self-attention", "n").value == pytest.approx(2)
    assert found.exponent("recurrent", "n").value == pytest.approx(1)
    assert found.exponent("recurrent", "d").value == pytest.approx(1)
    is_faster, ((size, margin),), rounds = found.crossings("self-attention", "recurrent", "n")
    assert (is_faster, size, margin, rounds) == (True, pytest.approx(700), pytest.approx(0), 3)
    is_faster, ((size, _),), _ = found.crossings("recurrent", "self-attention", "n")
    assert (is_faster, size) == (False, pytest.approx(700))
    assert found.crossings("self-attention", "recurrent", "d") == (False, (), 3)
    assert found.estimate("recurrent", "n", LENGTHS[0]).margin == pytest.approx(0)


@pytest.mark.family("recurrent")
def test_crossings_have_an_interval_over_the_rounds():
    found = unlike(1.9, 2.0, 2.1)
    each = [700 ** (1 / (power - 1)) for power in (1.9, 2.0, 2.1)]  # where n ** power = 700 n
    (crossing,) = found.crossings("self-attention", "recurrent", "n").sizes
    assert crossing.value == pytest.approx(np.mean(each))
    assert crossing.margin == pytest.approx(4.303 * np.std(each, ddof=1) / 3**0.5)


@pytest.mark.family("recurrent")
def test_crossings_are_those_of_the_rounds_that_agree():
    found = unlike(2.0, 1.0, 2.0).crossings("self-attention", "recurrent", "n")
    assert (found.first_is_faster, found.rounds) == (True, 2)
    assert [one.value for one in found.sizes] == [pytest.approx(700)]
    assert unlike(2.0, 1.0, 3.0).crossings("self-attention", "recurrent", "n") is None


def test_a_killed_measurement_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(layer_times, "LENGTHS", (8, 16, 32))
    monkeypatch.setattr(layer_times, "WIDTHS", (4, 8, 64))
    kept = tmp_path / "times.json"
    first = measure_layers(kept, 0.001, 1)
    assert len(first.rounds) == 3  # the fewest
    assert len(first.rounds[0]) == len(KINDS) * 6
    state = json.loads(kept.read_text("utf-8"))
    state["rounds"].pop()
    kept.write_text(json.dumps(state), "utf-8")
    again = measure_layers(kept, 0.001, 1)
    assert again.rounds[:2] == first.rounds[:2]
    assert len(again.rounds) == 3
    assert first.threads == again.threads == 1
    with pytest.raises(RunFolderError, match="another budget"):
        measure_layers(kept, 0.002, 1)
    with pytest.raises(RunFolderError, match="number of threads"):
        measure_layers(kept, 0.001, 2)
    kept.write_text("[]", "utf-8")
    with pytest.raises(RunFolderError, match="cannot be read"):
        measure_layers(kept, 0.001, 1)


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: [state],
        lambda state: state | {"planned": "3"},
        lambda state: state | {"planned": None},
        lambda state: state | {"planned": 31, "rounds": state["rounds"] * 31},
        lambda state: state | {"rounds": state["rounds"] * 4},
        lambda state: state | {"rounds": {}},
        lambda state: state | {"rounds": [dict.fromkeys(state["rounds"][0], 0.0)]},
        lambda state: state | {"rounds": [dict.fromkeys(state["rounds"][0], "1")]},
        lambda state: state | {"rounds": [dict.fromkeys(state["rounds"][0], math.inf)]},
    ],
)
def test_damaged_times_are_refused(tmp_path, damage):
    state = {"budget": 1.0, "threads": 1, "planned": 3, "rounds": [times().rounds[0]]}
    kept = tmp_path / "times.json"
    kept.write_text(json.dumps(damage(state)), "utf-8")
    with pytest.raises(RunFolderError, match=r"times\.json must hold the times of layers"):
        measure_layers(kept, 1.0, 1)


def test_every_layer_is_timed_along_both_axes():
    assert len(points()) == len(KINDS) * (len(LENGTHS) + len(WIDTHS))
