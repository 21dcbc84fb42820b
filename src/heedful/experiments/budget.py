"""
How a time budget is shared among the systems of a table.

All systems train for the same time, or for the same number of steps times their factor `times`.
With equal time, a system that is too slow for the minimum number of steps is left out, and the
other systems share its time.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from heedful.errors import SettingError
from heedful.experiments.page import capital
from heedful.experiments.system import TableSystem
from heedful.experiments.task import TableTask

_TRAINING_SHARE = 0.7
"""Share of the budget for training; the rest is for preparation, validation and scoring."""
SECONDS_OF_VALIDATION = 2.5
"""Seconds that one validation takes on the text of the built-in grammar."""
_SCORING = 6
"""Seconds that each system needs apart from its steps: start, validations, averaging, scoring."""
_LEAST_SHARE = 0.4


def share_budget(
    task: TableTask, seconds: Mapping[str, float], budget: float, spent: float
) -> dict[str, int]:
    """
    Compute the number of steps of each system.

    `seconds`: the seconds per step, by the name of a system. `spent`: seconds of the budget that
    are already used.

    With equal time, systems that get too few steps are left out if other systems get enough. Raises
    `SettingError` if the budget is too small.
    """
    systems, shared = task.trained, _SharedBudget(task, seconds, budget, spent)
    while True:
        steps = shared.steps_of(systems)
        short = [s for s in systems if not s.after and steps[s.name] < s.fewest]
        dropped = {system.name for system in systems if not steps[system.name]}
        if short:  # drop what needs the longest first: its time may be enough for the others
            needs = {system.name: system.fewest * seconds[system.name] for system in short}
            longest = max(needs.values())
            dropped = {name for name, need in needs.items() if need == longest}
        if not dropped:
            return steps
        others = [system for system in systems if not {system.name, system.after} & dropped]
        if short and (task.equal == "steps" or not others):
            raise shared.too_little(systems)
        systems = others


class _SharedBudget(NamedTuple):
    """A budget in seconds, and the time that systems need."""

    task: TableTask
    seconds: Mapping[str, float]
    """Seconds per step, by the name of a system."""
    budget: float
    spent: float

    def steps_of(self, systems: Sequence[TableSystem]) -> dict[str, int]:
        """Compute the number of steps of systems that share the remaining budget."""
        left, besides = self.budget - self.spent, self._besides(systems)
        share = max(_TRAINING_SHARE * left - besides, _LEAST_SHARE * left, self.budget / 4)
        return {system.name: int(share / self._cost(systems, system)) for system in systems}

    def _besides(self, systems: Sequence[TableSystem]) -> float:
        """Compute the seconds that systems need apart from their steps."""
        more = SECONDS_OF_VALIDATION * max(0, (self.task.validations or 0) - 2)
        return (_SCORING + more) * len(systems)

    def _cost(self, systems: Sequence[TableSystem], system: TableSystem) -> float:
        """Compute how many seconds all systems together train for each step of `system`."""
        if self.task.equal == "time":
            return len(systems) * self.seconds[system.name]
        return sum(self.seconds[system.name] * system.times for system in systems) / system.times

    def too_little(self, systems: Sequence[TableSystem]) -> SettingError:
        """Build the error for a budget that is too small, with the smallest sufficient budget."""
        costs = {
            system: self._cost(systems, system) * system.fewest
            for system in systems
            if not system.after
        }
        in_steps = self.task.equal == "steps"
        system = (max if in_steps else min)(costs, key=lambda system: costs[system])
        # the inverse of `steps_of`
        left = min(
            (costs[system] + self._besides(systems)) / _TRAINING_SHARE, costs[system] / _LEAST_SHARE
        )
        minutes = min(left + self.spent, 4 * costs[system]) / 60 + 1
        return SettingError(
            f"--budget must allow {'every' if in_steps else 'at least one'} system its "
            f"minimum number of steps, but {say_time(self.budget / self.task.share)} allow "
            f"{system.title} only {self.steps_of(systems)[system.name]} of {system.fewest}; give "
            f"at least {math.ceil(minutes / self.task.share)}m."
        )


def why_left_out(
    systems: Sequence[TableSystem], left_out: Collection[str], budget: float
) -> dict[str, str]:
    """
    Explain why some systems of a table are not trained; the keys are the names of these systems.

    `left_out`: the names of the systems that the table's plan leaves out.
    """
    titles = {system.name: system.title for system in systems}
    reasons: dict[str, str] = {}
    for system in systems:
        missing = [name for name in (system.after, *system.members) if name in reasons]
        if missing:
            needed = ", ".join(titles[name] for name in missing)
            reasons[system.name] = (
                f"{system.title} is left out, because it needs systems that are left out: {needed}."
            )
        elif system.name in left_out:
            fewest = "no step" if system.after else f"fewer than {system.fewest} steps"
            reasons[system.name] = (
                f"{system.title} is left out: its share of the budget of "
                f"{say_time(budget)} allows {fewest}; increase --budget."
            )
    return {name: capital(reason) for name, reason in reasons.items()}


def say_time(seconds: float) -> str:
    """Format a time, in seconds if it is under two minutes, else in minutes."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} minutes"
