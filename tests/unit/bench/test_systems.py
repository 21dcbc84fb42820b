import sys
from pathlib import Path

import pytest

from heedful.bench import train as bench_of_steps
from heedful.bench import translate as bench_of_searches
from heedful.bench.systems import System, Systems, find_systems, run_in_turns
from heedful.bench.train import Conditions, bench_train
from heedful.bench.translate import BenchText, bench_random
from heedful.search.settings import PEERS_SEARCH
from tests.support.toy_system import TOY


@pytest.fixture
def peers(tmp_path: Path) -> Path:
    """A folder with a toy toolkit and one that is not installed."""
    for name in ("toy", "absent"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "bench.py").write_text(TOY, encoding="utf-8")
    programs = tmp_path / "toy" / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(sys.executable)
    return tmp_path


def test_peers_that_are_installed_take_part(peers):
    field = find_systems("train", "bf16", peers, (), forced=False)
    assert [one.title for one in field.systems] == [
        "heedful",
        "toy slow",
        "toy quick",
        "toy broken",
    ]
    assert field.notes == ("absent is not installed; `make peers` installs it.",)
    forced = find_systems("train", "fp32", peers, ("toy",), forced=True)
    assert [one.title for one in forced.systems] == ["toy slow"]
    assert forced.notes == ()
    one = find_systems("train", "bf16", peers, ("toy quick", "absent fast"), forced=False)
    assert [each.title for each in one.systems] == ["toy quick"]
    assert len(one.notes) == 1
    assert find_systems("train", "fp32", None, (), forced=True).systems[0].title == "heedful"


def test_turns_are_added_up_and_a_failure_is_told(small_products, peers):
    command = (sys.executable, str(peers / "toy" / "bench.py"))
    several = [System("toy", command, name, "bf16") for name in ("quick", "broken")]
    told = []
    request = {"task": "train", "steps": 2, "device": "cpu", "threads": 1}
    turns = run_in_turns(Systems(tuple(several), ()), request, 2, told.append)
    ((contender, answer),) = turns.answers
    assert (contender.variant, answer["seconds"]) == ("quick", [1.0] * 4)
    assert [note.endswith("it does not go") for note in turns.notes] == [True]
    assert told == [
        "round 1 of 2: toy quick",
        "round 1 of 2: toy broken",
        "round 2 of 2: toy quick",
    ]
    assert min(turns.rates.values()) > 0


class OnOneGpu(Conditions):
    """A machine with a GPU."""

    def resolve(self):
        return "cuda:0", "bf16", 1


@pytest.mark.parametrize("bench", [bench_of_steps, bench_of_searches])
def test_peers_are_measured_in_their_variants_for_the_device(bench, monkeypatch):
    class Asked(Exception):
        pass

    def ask(*_, device, **__):
        raise Asked(device)

    monkeypatch.setattr(bench, "find_systems", ask)
    with pytest.raises(Asked, match="cuda:0"):
        if bench is bench_of_steps:
            bench_train("tiny", conditions=OnOneGpu(), say=print)
        else:
            bench_random(
                "tiny", (), BenchText(search=PEERS_SEARCH), conditions=OnOneGpu(), say=print
            )
