"""The parts of `heedful bench device`, rehearsed on the processor without processes."""

import json
import sys

import pytest

from heedful.bench import device
from heedful.bench.device import (
    ALL_ON,
    DETERMINISTIC,
    OPTIMIZATIONS_OFF,
    PLAIN,
    SIZES,
    bench_device,
    choose_parts,
)
from heedful.bench.device_checks import measure_correct, measure_rates
from heedful.bench.device_report import device_lines
from heedful.bench.search import measure_search
from heedful.bench.step import measure_step
from heedful.bench.systems import OURS, System
from heedful.errors import MeasurementFailed, SettingError
from heedful.experiments.record import Record

pytestmark = pytest.mark.usefixtures("small_products")
TINY = SIZES["tiny"]
TASKS = {
    "train": measure_step,
    "translate": measure_search,
    "correct": measure_correct,
    "rates": measure_rates,
}


@pytest.fixture
def in_this_process(monkeypatch):
    """Answer requests here; the requests, in their order."""
    requests = []

    def run(system, request, seconds=None):
        assert seconds > 0
        sent = {**request, "variant": system.variant, "precision": system.precision}
        requests.append((system, sent))
        return json.loads(json.dumps(TASKS[sent["task"]](sent)))

    monkeypatch.setattr(System, "run", run)
    return requests


def bench(folder, *parts, **options):
    messages = []
    place = {"device": "cpu", "precision": "fp32", "threads": 1, "size": "tiny"}
    records = bench_device(folder, parts, **{**place, **options}, say=messages.append)
    return records, messages


def test_a_rehearsal_measures_every_part_and_writes_its_record(in_this_process, tmp_path):
    records, _ = bench(tmp_path / "out")
    parts = [record.measurements for record in records]
    assert [part["part"] for part in parts] == [*choose_parts((), TINY)]
    for record, part in zip(records, parts, strict=True):
        assert Record.read(tmp_path / "out" / f"device-{part['part']}.json") == record
        assert record.commands == [
            f"heedful bench device --out OUT --part {part['part']} --size tiny"
        ]
        assert part["entries"], part
        assert not [entry for entry in part["entries"] if "failed" in entry], part
        assert "failed" not in part
    by_part = {part["part"]: part["entries"] for part in parts}
    assert all(entry["equal"] for entry in by_part["correct"])
    assert {entry["what"] for entry in by_part["correct"]} == {"step", "search"}
    choices = [entry["levers"] for entry in by_part["step-base"]]
    assert choices == [*OPTIMIZATIONS_OFF, DETERMINISTIC]
    assert by_part["step-base"][0]["counts"]["target tokens"] == 300
    kernels = {(entry["batch"], entry["kernels"]) for entry in by_part["search"]}
    assert kernels == {(size, way) for size in (4, 1) for way in ("with graphs", PLAIN)}
    assert [entry["round"] for entry in by_part["peers-train"]] == [1, 2, 3]
    assert by_part["peers-search"][0]["counts"] == {"sentences": 8, "tokens": 8 * 24}

    lines = device_lines(parts)
    assert lines[-1].startswith("A training step of `tiny` reaches ")
    assert lines[-1].endswith(
        "unpadded batches, compiled layers, CUDA graphs and prefetched batches are off, because "
        "only a GPU computes whole steps without padding."
    )
    # optimizations and kernels reach the process that measures
    steps = [sent for _, sent in in_this_process if sent["task"] == "train"]
    assert [sent["levers"]["graphs"] for sent in steps[:3]] == [True, False, False]
    is_deterministic = [sent["settings"]["train"]["deterministic"] for sent in steps]
    assert is_deterministic[:8] == [False] * 6 + [True, False]
    plain = [system for system, _ in in_this_process if system.variant == PLAIN]
    assert {system.variables for system in plain} == {(("HEEDFUL_KERNELS", "plain"),)}


def test_parts_are_chosen_by_name_or_first_word():
    assert [*choose_parts(("step", "rates"), SIZES["full"])] == [
        "rates",
        "step-base",
        "step-big",
        "step-small",
    ]
    with pytest.raises(SettingError, match="a part must be one of correct, rates, step-base"):
        choose_parts(("ste",), TINY)


def test_a_measurement_that_fails_is_recorded_and_the_next_follows(monkeypatch, tmp_path):
    def run(system, request, seconds=None):
        if request["levers"]["graphs"]:
            return {"seconds": [0.5, 1.0, 2.0], "memory": 1000, "loss": 1.0}
        raise MeasurementFailed("out of memory")

    monkeypatch.setattr(System, "run", run)
    (record,), _ = bench(tmp_path, "step-base")
    part = record.measurements
    failed = {entry["levers"] for entry in part["entries"] if "failed" in entry}
    assert failed == {name for name, off in OPTIMIZATIONS_OFF.items() if "graphs" in off}
    lines = device_lines([part])
    assert "failed: tiny, graphs off: out of memory" in lines
    first = next(line for line in lines if ALL_ON in line)
    assert first.split()[3] == "300"  # target tokens in the median second


def test_a_part_that_fails_is_recorded_and_the_next_follows(monkeypatch, tmp_path):
    def broken(visit):
        yield {"what": "rates", "failed": "no"}
        raise RuntimeError("a driver went away")

    monkeypatch.setattr(device, "_rates", broken)
    monkeypatch.setattr(System, "run", lambda *_: {"seconds": [1.0], "memory": 1, "loss": 1.0})
    records, _ = bench(tmp_path, "rates", "step-small")
    rates, step = (record.measurements for record in records)
    assert rates["failed"] == "RuntimeError: a driver went away"
    assert len(rates["entries"]) == 1
    assert len(step["entries"]) == len(OPTIMIZATIONS_OFF) + 1
    assert Record.read(tmp_path / "device-rates.json") == records[0]


def test_nothing_begins_when_the_minutes_are_over(in_this_process, tmp_path):
    (record,), _ = bench(tmp_path, "search", minutes=0.1)
    assert in_this_process == []
    assert {entry["failed"] for entry in record.measurements["entries"]} == {
        "not measured: this part had too little time left"
    }


PEER = """
import json, sys
request = json.load(sys.stdin)
if request["task"] == "variants":
    assert request["device"] == "cpu"
    answer = {"variants": [{"name": name, "precision": "fp32"} for name in ("good", "bad")]}
elif request["variant"] == "bad":
    sys.exit("it has no such kernel")
else:
    answer = {"seconds": [1.0], "memory": 1000, "loss": 1.0}
print(json.dumps(answer))
"""


def test_peers_take_turns_by_the_named_python(monkeypatch, tmp_path):
    run = System.run

    def ours_at_once(system, request, seconds):
        measured = {"seconds": [2.0], "memory": 1000, "loss": 1.0}
        return measured if system.name == OURS else run(system, request, seconds)

    monkeypatch.setattr(System, "run", ours_at_once)
    (tmp_path / "peers" / "toy").mkdir(parents=True)
    (tmp_path / "peers" / "toy" / "bench.py").write_text(PEER, encoding="utf-8")
    peers = {"peers": tmp_path / "peers"}
    (without,), _ = bench(tmp_path, "peers-train", **peers)
    assert (
        without.measurements["entries"][0]["failed"]
        == "toy is not installed; `make peers` installs it."
    )
    (record,), _ = bench(tmp_path, "peers-train", **peers, peers_python=sys.executable)
    turns = [(entry["who"], entry["round"]) for entry in record.measurements["entries"]]
    assert turns == [
        *[("heedful", 1), ("toy good", 1), ("toy bad", 1)],
        *[("heedful", 2), ("toy good", 2), ("heedful", 3), ("toy good", 3)],
    ]
    lines = device_lines([record.measurements])
    assert any(line.endswith("it has no such kernel") for line in lines)
    (row,) = [line for line in lines if line.startswith("tiny, toy good")]
    assert row.endswith("2.00")  # times as fast as heedful
