import json
import math

import pytest

from heedful.errors import RunFolderError, SettingError
from heedful.experiments import plan as plan_module
from heedful.experiments.plan import Plan, make_plan, write_rates
from heedful.experiments.system import TableSystem
from heedful.experiments.task import TableTask

COMMON = ("data.vocabulary_size=300", "model.d_model=16", "model.d_ff=16", "model.heads=2")
SYSTEMS = (
    TableSystem("slow", "Slow"),
    TableSystem("fast", "Fast", ("train.batch_tokens=512",), times=3),
    TableSystem("more", "More", after="slow", slowdown=4.0),
    TableSystem("both", "Both", members=("slow", "fast")),
)


def planned(corpus, out, equal, budget=1_000.0, systems=SYSTEMS, validations=None, **rates):
    write_rates(out / "rates.json", rates, 1)
    task = TableTask("tiny", COMMON, systems, corpus, out, equal, validations=validations)
    return make_plan(task, budget, 1, lambda _: None)


def test_equal_time_gives_each_system_its_share(corpus, tmp_path):
    plan = planned(corpus, tmp_path, "time", slow=1_000.0, fast=10_000.0)
    assert [one.name for one in plan.systems] == ["slow", "fast", "more"]
    slow, fast, more = plan.systems
    for one in plan.systems:
        assert one.seconds == pytest.approx((700 - 3 * 6) / 3, rel=0.05)
    assert fast.steps == pytest.approx(40 * slow.steps, rel=0.05)
    assert more.tokens_per_second == slow.tokens_per_second / 4
    assert f"train.steps={slow.steps}" in slow.settings
    assert {"train.precision=fp32", "train.precision=bf16"} & {*slow.settings}
    assert slow.data == fast.data
    assert (tmp_path / slow.data / "tokenizer.json").exists()


def test_equal_steps_share_the_budget_by_the_cost_of_a_step(corpus, tmp_path):
    plan = planned(corpus, tmp_path, "steps", slow=1_000.0, fast=1_000.0)
    slow, fast, more = plan.systems
    assert slow.steps == more.steps
    assert fast.steps == pytest.approx(3 * slow.steps, rel=0.05)
    assert sum(one.seconds for one in plan.systems) == pytest.approx(700 - 3 * 6, rel=0.05)


def test_a_plan_is_read_as_it_was_written(corpus, tmp_path):
    plan = planned(corpus, tmp_path, "time", slow=1_000.0, fast=2_000.0)
    plan.write(tmp_path / "plan.json")
    assert Plan.read(tmp_path / "plan.json") == plan
    (tmp_path / "plan.json").write_text("{}", encoding="utf-8")
    with pytest.raises(RunFolderError, match="must be the plan of a table"):
        Plan.read(tmp_path / "plan.json")


@pytest.mark.parametrize(
    ("equal", "said"),
    [
        (
            "time",
            r"at least one system its minimum .* 20 s allow Fast only \d of 10; give at least \d+m",
        ),
        (
            "steps",
            r"every system its minimum .* but 20 s allow Slow only \d of 10; give at least \d+m",
        ),
    ],
)
def test_too_small_a_budget_is_refused_with_one_that_does(corpus, tmp_path, equal, said):
    with pytest.raises(SettingError, match=said):
        planned(corpus, tmp_path, equal, budget=20.0, slow=100.0, fast=100.0)


def test_what_is_too_slow_is_left_out_and_the_others_share_its_time(corpus, tmp_path):
    plan = planned(corpus, tmp_path, "time", budget=100.0, slow=100.0, fast=2_000.0)
    (fast,) = plan.systems
    assert (fast.name, plan.left_out) == ("fast", ("slow", "more"))
    assert fast.seconds == pytest.approx(0.7 * 100 - 6, rel=0.1)


def test_what_goes_on_from_another_is_left_out_without_a_step(corpus, tmp_path):
    slower = tuple(one._replace(slowdown=1e4) if one.after else one for one in SYSTEMS)
    plan = planned(
        *(corpus, tmp_path, "time"), budget=500.0, systems=slower, slow=1_000.0, fast=2_000.0
    )
    assert plan.left_out == ("more",)


def test_rates_are_measured_once(corpus, tmp_path):
    said = []
    for _ in range(2):
        systems = (SYSTEMS[0]._replace(title="lower case"),)
        task = TableTask("tiny", COMMON, systems, corpus, tmp_path, "time")
        plan = make_plan(task, 100.0, 1, said.append)
        assert plan.systems[0].tokens_per_second > 100
        assert plan.systems[0].parameters > 1_000
    assert said[0] == said[1]
    assert said[0].startswith("Lower case: ")


def test_another_seed_takes_the_steps_of_the_first(corpus, tmp_path):
    again = SYSTEMS[1]._replace(name="again", settings=(*SYSTEMS[1].settings, "train.seed=2"))
    plan = planned(corpus, tmp_path, "time", systems=(SYSTEMS[1], again), fast=12_345.0)
    first, second = plan.systems
    assert (second.steps, second.tokens_per_second) == (first.steps, 12_345.0)


def test_a_budget_too_small_to_measure_is_refused_before_the_work(corpus, tmp_path):
    with pytest.raises(SettingError, match=r"the rates of 2 systems .* 1 s; give"):
        planned(corpus, tmp_path, "time", budget=1.0)
    assert not (tmp_path / "text").exists()


@pytest.mark.parametrize(("budget", "validations"), [(1_000.0, 24), (100.0, 4)])
def test_validations_that_are_asked_for_have_their_part_of_the_budget(
    corpus, tmp_path, budget, validations
):
    plan = planned(
        *(corpus, tmp_path, "steps", budget), validations=24, slow=20_000.0, fast=20_000.0
    )
    for system in plan.systems:
        (every,) = (
            int(one.partition("=")[2])
            for one in system.settings
            if one.startswith("train.validate_steps=")
        )
        assert validations * 0.9 <= -(-system.steps // every) <= validations
    together = sum(one.seconds for one in plan.systems)
    assert together == pytest.approx(max(0.7 * budget - 3 * (6 + 22 * 2.5), 0.4 * budget), rel=0.1)


@pytest.mark.parametrize(
    "damaged",
    ["fast", "[]", "null", {"slow": None}, {"slow": "1"}, {"slow": 0}, {"slow": math.nan}],
)
def test_damaged_rates_are_refused_before_the_work(corpus, tmp_path, damaged):
    write_rates(tmp_path / "rates.json", {}, 1)
    if isinstance(damaged, dict):
        known = json.loads((tmp_path / "rates.json").read_text(encoding="utf-8"))
        damaged = json.dumps(known | {"rates": damaged})
    (tmp_path / "rates.json").write_text(damaged, encoding="utf-8")
    task = TableTask("tiny", COMMON, SYSTEMS, corpus, tmp_path, "time")
    with pytest.raises(RunFolderError, match=r"rates\.json must contain the rates of systems"):
        make_plan(task, 1_000.0, 1, lambda _: None)
    assert not (tmp_path / "text").exists()


def test_rates_of_other_conditions_are_not_used(corpus, tmp_path, monkeypatch):
    def plan(threads):
        task = TableTask("tiny", COMMON, SYSTEMS[:1], corpus, tmp_path, "time")
        return make_plan(task, 1_000.0, threads, lambda _: None).systems[0].tokens_per_second

    rates = iter([100.0, 200.0, 300.0])
    monkeypatch.setattr(
        plan_module, "rates_in_turns", lambda _, timed, __: [next(rates) for _ in timed]
    )
    assert [plan(threads) for threads in (1, 1, 2)] == [100.0, 100.0, 200.0]
    (tmp_path / "rates.json").write_text('{"slow": 7.0}', encoding="utf-8")  # an earlier format
    assert plan(2) == 300.0
