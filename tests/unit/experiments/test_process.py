import sys

import pytest

from heedful.errors import MeasurementFailed
from heedful.experiments.process import run_process, time_repeats
from tests.support.toy_system import TOY


def test_others_get_the_environment_as_the_user_has_it(monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    monkeypatch.setenv("USER_CHOICE", "stays")
    monkeypatch.setenv("HEEDFUL_ENVIRONMENT", "OMP_WAIT_POLICY=passive")
    tell = "import json, os; names = {'OMP_WAIT_POLICY', 'USER_CHOICE'} & {*os.environ}; "
    command = (sys.executable, "-c", tell + "print(json.dumps({'names': sorted(names)}))")
    assert run_process(command, {}, foreign=True)["names"] == ["USER_CHOICE"]
    assert run_process(command, {})["names"] == ["OMP_WAIT_POLICY", "USER_CHOICE"]


def test_a_process_is_asked_and_its_last_line_is_the_answer():
    command = [sys.executable, "-c", TOY]
    asked = {"task": "train", "variant": "quick", "steps": 2}
    assert run_process(command, asked)["seconds"] == [1.0, 1.0]
    with pytest.raises(MeasurementFailed, match="exit code 1: it does not go"):
        run_process(command, {**asked, "variant": "broken"})
    with pytest.raises(MeasurementFailed, match="must answer with a JSON object"):
        run_process([sys.executable, "-c", "print('nothing of use')"], {})


def test_work_is_timed_as_often_as_asked():
    done = []
    seconds = time_repeats(lambda: done.append(1), 4)
    assert len(seconds) == len(done) == 4
    assert min(seconds) >= 0
