"""
How a budget of time is shared among the systems of a table.

Systems train equally long, or take equally many steps. Of those that train equally long some may be
too slow for the fewest steps; they are left out, and the others share what they leave.
"""

from collections.abc import Collection, Mapping, Sequence

from heedful.errors import SettingError
from heedful.experiments.page import capital
from heedful.experiments.system import TableSystem
from heedful.experiments.task import TableTask

_TRAINING_SHARE = 0.7
"""Of the budget; the rest is for preparing, measuring, validating and scoring."""
SECONDS_OF_VALIDATION = 2.5
"""Of one on the embedded text."""
_FEWEST = 10
_SCORING = 6
"""Seconds of a system besides that share: starting, two validations, averaging and scoring."""
_LEAST_SHARE = 0.4


def share_budget(
    task: TableTask, seconds: Mapping[str, float], budget: float, spent: float
) -> dict[str, int]:
    """
    Count the steps of each system.

    `seconds`: of a step. `spent`: seconds of the budget that are gone.

    Of systems that train equally long those are left out that get too few steps, if others get
    enough.
    """
    systems = task.trained
    while True:
        steps = _steps_of(task, systems, seconds, budget, spent)
        short = [one for one in systems if not one.after and steps[one.name] < _FEWEST]
        dropped = {one.name for one in systems if not steps[one.name]}
        if short:  # the slowest first, for what they leave may be enough for the others
            slowest = max(seconds[one.name] for one in short)
            dropped = {one.name for one in short if seconds[one.name] == slowest}
        if not dropped:
            return steps
        others = [one for one in systems if not {one.name, one.after} & dropped]
        if short and (task.equal == "steps" or not others):
            raise _too_little(task, systems, seconds, budget, spent)
        systems = others


def _steps_of(
    task: TableTask,
    systems: Sequence[TableSystem],
    seconds: Mapping[str, float],
    budget: float,
    spent: float,
) -> dict[str, int]:
    """Count the steps of systems that share what is left of a budget."""
    left = budget - spent
    more = SECONDS_OF_VALIDATION * max(0, (task.validations or 0) - 2)
    besides = (_SCORING + more) * len(systems)
    share = max(_TRAINING_SHARE * left - besides, _LEAST_SHARE * left, budget / 4)
    return {one.name: int(share / _own_cost(task, systems, seconds, one)) for one in systems}


def _own_cost(
    task: TableTask,
    systems: Sequence[TableSystem],
    seconds: Mapping[str, float],
    system: TableSystem,
) -> float:
    """Compute what all systems together take while one takes a step."""
    if task.equal == "time":
        return len(systems) * seconds[system.name]
    return sum(seconds[one.name] * one.times for one in systems) / system.times


def _too_little(
    task: TableTask,
    systems: Sequence[TableSystem],
    seconds: Mapping[str, float],
    budget: float,
    spent: float,
) -> SettingError:
    """Say that a budget has too few steps, of the system that needs least where one is enough."""
    costs = {one.title: _own_cost(task, systems, seconds, one) for one in systems if not one.after}
    choose, whose = (max, "every") if task.equal == "steps" else (min, "at least one")
    title = choose(costs, key=lambda name: costs[name])
    needed = _minutes(costs[title] * _FEWEST / _TRAINING_SHARE + spent) / task.share
    steps = _steps_of(task, systems, seconds, budget, spent)
    (count,) = (steps[one.name] for one in systems if one.title == title)
    return SettingError(
        f"--budget must leave {whose} system {_FEWEST} steps, but {say_time(budget / task.share)} "
        f"leave {title} {count}; give at least {needed:.0f}m."
    )


def why_left_out(
    systems: Sequence[TableSystem], left_out: Collection[str], budget: float
) -> dict[str, str]:
    """Say why some systems of a table are not trained, by name. `left_out`: those of its plan."""
    titles = {system.name: system.title for system in systems}
    reasons: dict[str, str] = {}
    for system in systems:
        missing = [name for name in (system.after, *system.members) if name in reasons]
        if missing:
            needed = ", ".join(titles[name] for name in missing)
            reasons[system.name] = f"{system.title} is left out, because it needs {needed}."
        elif system.name in left_out:
            fewest = "no step" if system.after else f"fewer than {_FEWEST} steps"
            reasons[system.name] = (
                f"{system.title} is left out: its share of {say_time(budget)} has {fewest} for "
                "it; give more with --budget."
            )
    return {name: capital(reason) for name, reason in reasons.items()}


def say_time(seconds: float) -> str:
    """Write a time: under two minutes in seconds."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} minutes"


def _minutes(seconds: float) -> float:
    """Round up, with a minute to spare."""
    return seconds / 60 + 1
