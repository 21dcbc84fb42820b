"""An hour for each toolkit: the clock, the choices, and the page."""

import json
import sys
from itertools import pairwise

import pytest
import torch
from benchmarks import same_hour
from benchmarks.peers.same_hour import clock
from benchmarks.same_hour import (
    DRIVERS,
    SYSTEMS,
    best_of,
    check_size,
    expected_steps,
    fastest,
    score,
    spread,
)
from benchmarks.same_hour_page import TITLES, body, draw
from benchmarks.training import multi30k, read_lines

from heedful.config.load import load_config
from heedful.experiments.record import Record

SCORES = {"lower-cased": 30.0, "bleu": 29.0, "signatures": ["a", "b"]}
TRAINING = SCORES | {
    "trial": "cosine",
    "precision": "bf16",
    "threads": 2,
    "steps": 9000,
    "minutes": 60.0,
    "parameters": 1_325_056,
    "config": {"rate": 0.005},
    "size": same_hour.SIZE,
    "commit": "c1",
    "machine": "m1",
}
HOUR = TRAINING | {
    "curve": [SCORES | {"minutes": minute, "step": 10} for minute in (5.0, 10.0)],
    "average": SCORES | {"averaged": 10},
    "chosen": SCORES | {"averaged": 10, "lower-cased": 40.0},
    "test": SCORES | {"lower-cased": 39.5},
}
RECORD = {
    "joey": {
        "ways": {
            way: {"steps_per_second": rate, "rounds": [rate], "commit": "c2", "machine": "m2"}
            for way, rate in (("fp32, 2", 1.5), ("bf16, 2", 2.5))
        },
        "speeds": {"cosine": {"steps_per_second": 3.0, "rounds": [2.75, 3.25]}},
        "trials": {"cosine": TRAINING, "other": TRAINING | {"lower-cased": 20.0}},
        "hour": HOUR,
    }
}


@pytest.fixture
def seconds(monkeypatch):
    """The time that the clock reads next."""
    now = [0.0]
    monkeypatch.setattr(clock.time, "monotonic", lambda: now[0])
    return now


def clock_of(minutes):
    return clock.TrainingClock({"minutes": minutes, "rate": None, "steps": 10_000})


def test_every_toolkit_has_a_driver_a_title_and_as_many_trials():
    assert {*TITLES} == {*SYSTEMS}
    assert {len(system.trials) for system in SYSTEMS.values()} == {2}
    for name, system in SYSTEMS.items():
        assert (DRIVERS / f"with_{name}.py").is_file()
        assert system.requirements is None or system.requirements.is_file()


@pytest.mark.parametrize("name", SYSTEMS["heedful"].trials)
def test_the_settings_of_heedful_are_those_of_its_recipe_or_valid_changes(name, monkeypatch):
    monkeypatch.syspath_prepend(DRIVERS)
    import with_heedful

    settings = dict(SYSTEMS["heedful"].trials[name])
    warmup = round(settings.pop("warmup") * 9000)
    request = {"settings": settings, "size": same_hour.SIZE, "minutes": 60, "steps": 9000}
    request |= {"warmup": warmup, "precision": "bf16", "threads": 2, "seed": 1}

    def config_of(rate):
        changes = with_heedful.build_settings(request | {"rate": rate})
        return load_config("multi30k", [f"{key}={value}" for key, value in changes.items()])

    timed, counted = config_of(None), config_of(2.5)
    assert timed.model == counted.model == load_config("multi30k").model
    assert (timed.train.minutes, counted.train.minutes) == (60, None)
    assert counted.train.checkpoint_minutes is None
    assert (counted.train.steps, counted.train.checkpoint_steps) == (9000, 150)


def test_without_a_rate_a_training_ends_after_its_minutes_and_saves_nothing(seconds):
    timed = clock_of(minutes=1)
    timed.start()
    for step, now in enumerate((0.4, 30.0, 59.99, 61.0), 1):
        seconds[0] = now
        assert not timed.tick(step)
        assert timed.over is (step == 4)


def test_time_is_counted_in_steps_at_a_given_rate(seconds):
    counted = clock.TrainingClock({"minutes": 1, "rate": 2.5, "steps": 150})
    counted.start()
    seconds[0] = 1000.0  # the time that has passed plays no part
    due = []
    for step in range(1, 151):
        assert not counted.over
        if counted.tick(step):
            due.append(step)
            counted.saved(f"step-{step}")
    assert counted.over
    distances = {later - earlier for earlier, later in pairwise([0, *due])}
    assert (len(due), due[-1], distances) == (clock.SAVED, 150, {2, 3})
    assert counted.checkpoints[-1] == {"step": 150, "minutes": 1.0, "path": "step-150"}


def test_the_speed_is_that_of_the_second_half(seconds):
    timed = clock_of(minutes=1)
    timed.start()
    for step, now in ((1, 29.0), (2, 31.0), (3, 41.0), (8, 61.0)):
        seconds[0] = now
        assert not timed.tick(step)
    answer = timed.answer(100, {"a": 1})
    assert answer["steps_per_second"] == pytest.approx(6 / 30)
    assert answer["checkpoints"] == []


def test_a_training_of_one_step_has_a_speed(seconds):
    timed = clock_of(minutes=1)
    timed.start()
    seconds[0] = 80.0
    timed.tick(1)
    assert timed.answer(1, {})["steps_per_second"] == pytest.approx(1 / 80)


def test_a_driver_answers_its_request_in_a_file(tmp_path, monkeypatch):
    request, answer = tmp_path / "request.json", tmp_path / "answer.json"
    request.write_text('{"task": "double", "number": 4}', "utf-8")
    monkeypatch.setattr(sys, "argv", ["driver", str(request), str(answer)])
    clock.serve({"double": lambda asked: {"number": 2 * asked["number"]}})
    assert json.loads(answer.read_text("utf-8")) == {"number": 8}


def test_the_mean_of_weights_leaves_counters_alone():
    states = [{"w": torch.tensor([value]), "n": torch.tensor(int(value))} for value in (1.0, 4.0)]
    mean = clock.mean_of(states)
    assert mean["w"].tolist() == [2.5]
    assert mean["n"].item() == 4


def test_the_fastest_way_and_the_best_trial_are_chosen():
    ways = {"fp32, 1": {"steps_per_second": 1.0}, "bf16, 2": {"steps_per_second": 2.0}}
    assert fastest(ways) == ("bf16", 2)
    assert expected_steps(2.0, 60) == 7200
    assert best_of({"a": {"lower-cased": 9.5}, "b": {"lower-cased": 10.0}}) == "b"


def test_points_of_the_curve_are_the_checkpoints_nearest_to_their_times():
    checkpoints = [{"minutes": minute + 0.02, "step": minute} for minute in range(1, 61)]
    assert [row["step"] for row in spread(checkpoints, 60)] == [*range(5, 61, 5)]
    assert [row["step"] for row in spread(checkpoints[:1], 60)] == [1]


def test_a_model_of_another_size_is_refused(monkeypatch):
    monkeypatch.setattr(same_hour, "known", lambda system, kind: {"parameters": 100})
    check_size("joey", 119)
    with pytest.raises(SystemExit, match=r"like size.* that of joey has 121 parameters"):
        check_size("joey", 121)


def test_an_hour_needs_every_trial(monkeypatch, tmp_path, corpora):
    monkeypatch.setattr(same_hour, "known", lambda system, kind: {})
    toolkit = same_hour.ToolkitDriver("heedful", tmp_path)
    assert len((tmp_path / "train.de").read_text("utf-8").splitlines()) == 29_000
    with pytest.raises(SystemExit, match="every trial of heedful"):
        same_hour.run_hour(toolkit, 60, "c")


def test_an_hour_that_was_trained_is_not_trained_again(monkeypatch, tmp_path):
    kept = []
    trials = {"cosine": {"lower-cased": 30.0}, "recipe multi30k": {"lower-cased": 20.0}}
    monkeypatch.setattr(same_hour, "known", lambda system, kind: trials if kind == "trials" else {})
    monkeypatch.setattr(same_hour, "score", lambda lines, part: SCORES)
    monkeypatch.setattr(same_hour, "keep", lambda *arguments: kept.append(arguments))
    checkpoints = [{"step": step, "minutes": 5.0 * step, "path": f"{step}"} for step in (1, 2)]
    answer = {"parameters": 5, "threads": 1, "checkpoints": checkpoints}
    (tmp_path / "hour.json").write_text(json.dumps(answer), "utf-8")

    class TrainedToolkit:
        system, folder = "heedful", tmp_path

        def ask(self, task, threads, **request):
            assert (task, request["checkpoints"]) == ("average", ["1", "2"])

        def translate(self, name, trial, checkpoints, part):
            return [["x"] for _ in checkpoints]

    same_hour.run_hour(TrainedToolkit(), 60, "c")
    ((_, _, _, stored, *_),) = kept
    assert stored["test"] == SCORES and len(stored["curve"]) == 2


def test_a_training_needs_the_measured_speed_of_its_trial(monkeypatch):
    stored = {"ways": {"fp32, 1": {"steps_per_second": 1.0}}, "speeds": {}}
    monkeypatch.setattr(same_hour, "known", lambda system, kind: stored[kind])
    with pytest.raises(SystemExit, match="same_hour speeds"):
        same_hour.speed_of("joey", "cosine", 60)
    stored["speeds"] = {"cosine": {"steps_per_second": 2.5}}
    assert same_hour.speed_of("joey", "cosine", 60) == (("fp32", 1), 60, 2.5)


def test_toolkits_take_turns_in_the_measurement_of_speeds(monkeypatch, tmp_path):
    stored, asked = {}, []

    class TimedToolkit:
        def __init__(self, system):
            self.system = system

        def train(self, name, trial, way, minutes, rate):
            assert rate is None
            asked.append((self.system, trial, way))
            return {"steps_per_second": float(way == ("bf16", 1)) + len(asked)}

    monkeypatch.setattr(same_hour, "known", lambda system, kind: stored.get((system, kind), {}))

    def keep(system, kind, key, answer, commit):
        stored.setdefault((system, kind), {})[key] = answer

    monkeypatch.setattr(same_hour, "keep", keep)
    systems = [TimedToolkit("heedful"), TimedToolkit("joey")]
    same_hour.measure_speeds(systems, 0.1, "c")
    assert [system for system, *_ in asked[:4]] == ["heedful", "joey", "heedful", "joey"]
    of_ways = len(same_hour.WAYS) * len(systems)
    assert {way for *_, way in asked[of_ways:]} == {same_hour.WAYS[-1]}
    assert [system for system, *_ in asked[of_ways:]] == 2 * (2 * ["heedful"] + 2 * ["joey"])
    assert all(
        len(row["rounds"]) == same_hour.SPEED_ROUNDS
        for (_, kind), rows in stored.items()
        for row in rows.values()
        if kind == "speeds"
    )
    count = len(asked)
    same_hour.measure_speeds(systems, 0.1, "c")  # nothing is measured again
    assert len(asked) == count


def test_an_absent_toolkit_is_named(monkeypatch, tmp_path, corpora):
    monkeypatch.setattr(same_hour, "ENVIRONMENTS", tmp_path)
    with pytest.raises(SystemExit, match="environment --system joey"):
        same_hour.ToolkitDriver("joey", tmp_path).ask("train", 1)


def test_translations_are_scored_with_and_without_case(corpora):
    reference = read_lines(multi30k("val", "de"))
    scores = score([line.lower() for line in reference], "val")
    assert scores["lower-cased"] == pytest.approx(100)
    assert scores["bleu"] < 50
    assert "case:lc" in scores["signatures"][0]


def test_a_rehearsal_needs_a_place_for_its_record(monkeypatch, capsys):
    line = ["same_hour", "train", "--system", "joey", "--minutes", "0.3", "--commit", "c"]
    monkeypatch.setattr(sys, "argv", line)
    with pytest.raises(SystemExit):
        same_hour.main()
    assert "--results" in capsys.readouterr().err


def test_the_page_has_a_row_for_each_hour_and_trial(tmp_path):
    page = body(Record("c", "m", RECORD))
    row = (
        "| Joey NMT 2.3.0 | **39.5** | 29.0 | 40.0 | average of 10 | 9,000 | bf16, 2 | 1,325,056 |"
    )
    assert row in page
    assert "| Joey NMT 2.3.0 | cosine | 60.0 | 9,000 | 30.0 | **chosen** |" in page
    assert "| Joey NMT 2.3.0 | cosine | fp32, 2 | 1.50 |  |" in page
    assert "| Joey NMT 2.3.0 | cosine | bf16, 2 | 2.50 | **yes** |" in page
    assert "| Joey NMT 2.3.0 | cosine | bf16, 2 | 2.75, 3.25 |  |" in page
    assert "`a`, `b`" in page
    assert "Measured at commit c1 on m1: Joey NMT 2.3.0.\n" in page
    assert "Measured at commit c1 on m1: Joey NMT 2.3.0, cosine; Joey NMT 2.3.0, other." in page
    assert "Measured at commit c2 on m2: Joey NMT 2.3.0.\n" in page
    assert "4 layers on each side, width 128 and inner width 256" in page
    draw(RECORD, tmp_path / "picture.svg")
    assert "test 39.5" in (tmp_path / "picture.svg").read_text("utf-8")


def test_a_page_without_hours_has_no_picture(tmp_path):
    trials = {"joey": {"trials": RECORD["joey"]["trials"]}}
    assert "same-hour.svg" not in body(Record("c", "m", trials))
    draw(trials, tmp_path / "picture.svg")
    assert not (tmp_path / "picture.svg").exists()
