"""Rates of systems, measured in this process."""

import json

import pytest

from heedful.experiments import rates
from heedful.experiments.rates import TimedSettings, measure_in_turns, rates_in_turns


def test_each_system_has_the_rate_of_its_median_step(monkeypatch):
    requests = []

    def answer(command, request):
        assert command[1:] == ["-m", "heedful.experiments.rates"]
        requests.append(request)
        return {"seconds": [[0.5, 2.0, 1.0] for _ in request["trainings"]]}

    monkeypatch.setattr(rates, "run_process", answer)
    timed = [TimedSettings(("train.batch_tokens=100",), 10, 10) for _ in range(9)]
    assert rates_in_turns("tiny", timed, 1) == [100.0] * 9
    assert [len(request["trainings"]) for request in requests] == [8, 1]
    # as for `train.batch_tokens`, the tokens are those of the longer side
    unequal = [
        TimedSettings(("train.batch_tokens=100",), *lengths) for lengths in ((20, 5), (5, 20))
    ]
    assert rates_in_turns("tiny", unequal, 1) == [100.0] * 2


def test_trainings_take_steps_in_turns():
    requests = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rates, "run_process", lambda _, sent: requests.append(sent) or SECONDS)
        rates_in_turns("tiny", [TimedSettings(("train.batch_tokens=40",), 5, 5)] * 2, 1, 2)
    seconds = measure_in_turns(json.loads(json.dumps(requests[0])))["seconds"]
    assert [len(steps) for steps in seconds] == [2, 2]
    assert min(map(min, seconds)) > 0


SECONDS = {"seconds": [[1.0], [1.0]]}
