"""Budgets that are too small for some systems, and what is said of these."""

import re
from pathlib import Path

import pytest

from heedful.errors import SettingError
from heedful.experiments.budget import say_time, share_budget, why_left_out
from heedful.experiments.corpus import TableCorpus
from heedful.experiments.system import TableSystem
from heedful.experiments.task import TableTask

SYSTEMS = (
    TableSystem("slowest", "Slowest"),
    TableSystem("slow", "Slow"),
    TableSystem("fast", "Fast"),
    TableSystem("more", "Slow + RL", after="slow", slowdown=4.0),
    TableSystem("slow-2", "Slow, seed 2", ("train.seed=2",)),
    TableSystem("both", "Slow, ensemble", members=("slow", "slow-2")),
)
SECONDS = {"slowest": 4.0, "slow": 1.0, "fast": 0.1, "more": 4.0, "slow-2": 1.0}


def task(equal="time"):
    return TableTask("tiny", (), SYSTEMS, TableCorpus(Path(), "en", "fr", 300), Path(), equal)


def test_what_the_slowest_leaves_may_be_enough_for_the_others():
    # five systems: 134 s for each, in which the slowest takes 33 steps
    whole = share_budget(task(), SECONDS, 1_000.0, 0.0)
    assert set(whole) == {*SECONDS}
    # 8.5 s for each of five are 8 steps of the slow ones; 12.1 s for each of four are enough
    some = share_budget(task(), SECONDS, 103.5, 0.0)
    assert some == {"slow": 12, "fast": 121, "more": 3, "slow-2": 12}
    few = share_budget(task(), SECONDS, 40.0, 0.0)
    assert set(few) == {"fast"}


def test_a_system_is_left_out_below_its_own_minimum():
    # four systems with steps of 1 s and less get 26 steps of the slow ones in 150 s
    systems = tuple(
        system._replace(fewest=100 if system.name == "slow-2" else 10) for system in SYSTEMS[1:]
    )
    steps = share_budget(task()._replace(systems=systems), SECONDS, 150.0, 0.0)
    assert set(steps) == {"slow", "fast", "more"}
    reasons = why_left_out(systems, ("slow-2",), 150.0)
    assert "Slow, seed 2 is left out: its share" in reasons["slow-2"]
    assert "fewer than 100 steps" in reasons["slow-2"]


def test_equal_steps_leave_nobody_out():
    with pytest.raises(
        SettingError,
        match=r"every system its minimum number of steps, but 60 s allow Slowest "
        r"only \d of 10",
    ):
        share_budget(task("steps"), SECONDS, 60.0, 0.0)


@pytest.mark.parametrize("equal", ["time", "steps"])
@pytest.mark.parametrize("validations", [None, 10])
@pytest.mark.parametrize("slower", [1.0, 30.0])
def test_the_budget_that_a_refusal_names_is_enough(equal, validations, slower):
    seconds = {name: slower * second for name, second in SECONDS.items()}
    table = task(equal)._replace(validations=validations)
    for budget in (1.0, 20.0, 60.0, 200.0):
        try:
            share_budget(table, seconds, budget, spent=0.5)
        except SettingError as error:
            minutes = int(re.search(r"give at least (\d+)m\.", str(error))[1])
            assert share_budget(table, seconds, 60.0 * minutes, spent=0.5)


def test_the_reasons_are_said_of_each_system_and_of_what_needs_it():
    reasons = why_left_out(SYSTEMS, ("slowest", "slow-2", "more"), 180.0)
    assert reasons == {
        "slowest": "Slowest is left out: its share of the budget of 3.0 minutes allows "
        "fewer than 10 steps; increase --budget.",
        "more": "Slow + RL is left out: its share of the budget of 3.0 minutes allows no step; "
        "increase --budget.",
        "slow-2": "Slow, seed 2 is left out: its share of the budget of 3.0 minutes allows "
        "fewer than 10 steps; increase --budget.",
        "both": "Slow, ensemble is left out, because it needs systems that are left out: "
        "Slow, seed 2.",
    }
    without = why_left_out(SYSTEMS, ("slow", "slow-2", "more"), 180.0)
    needs = "is left out, because it needs systems that are left out: "
    assert without["more"] == f"Slow + RL {needs}Slow."
    assert without["both"] == f"Slow, ensemble {needs}Slow, Slow, seed 2."
    assert why_left_out(SYSTEMS, (), 180.0) == {}


def test_short_times_are_said_in_seconds():
    assert (say_time(119.4), say_time(180.0)) == ("119 s", "3.0 minutes")
