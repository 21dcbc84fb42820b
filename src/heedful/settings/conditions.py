"""
Settings that act (have an effect) only if another setting has a certain value.

The annotation of a setting, or of a whole table, contains the condition::

    momentum: Annotated[Share, ActsIf("train.optimizer", ("sgd",))] = 0.0

A setting that does not act must keep its default. Another value is refused, unless it comes from a
recipe and a later change made the setting idle; then it is reset to the default. So a file may list
every setting, and only active settings are printed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ActsIf:
    """The condition that another setting acts and has one of certain values."""

    settings: str | tuple[str, ...]
    """
    Dotted name of the other setting, or names of several settings; at least one of them must
    fulfill the condition.
    """
    values: tuple[object, ...] = ()
    """The other setting's values that fulfill the condition; empty for all not in `unless`."""
    unless: tuple[object, ...] = ()
    """The other setting's values that do not fulfill the condition."""
    families_with: str = ""
    """A trait; the names of all families with this trait count as `values`."""
    families_without: str = ""
    """A trait; the names of all families with this trait count as `unless`."""

    @property
    def names(self) -> tuple[str, ...]:
        """Dotted names of the other settings."""
        return (self.settings,) if isinstance(self.settings, str) else self.settings

    def with_families(self, names_with: "NamesWith") -> "ActsIf":
        """Replace traits with names of families. `names_with`: finds the names by a trait."""
        values, unless = self.values, self.unless
        if self.families_with:
            names = names_with(self.families_with, self.names)
            values = (*values, *names) or ("a family that is not registered",)
        if self.families_without:
            unless = (*names_with(self.families_without, self.names), *unless)
        return ActsIf(self.settings, values, unless)

    def holds_for(self, value: object) -> bool:
        """Return whether a value of the other setting fulfills the condition."""
        return value in self.values if self.values else value not in self.unless

    def describe(self) -> str:
        """Write the condition as a clause after “only if”."""
        names = " or ".join(f"`{name}`" for name in self.names)
        wanted = list_values(self.values) if self.values else f"not {list_values(self.unless)}"
        return f"{names} is {wanted}"

    def advice(self) -> str:
        """Describe which setting to change to fulfill the condition."""
        names = " or ".join(f"`{name}`" for name in self.names)
        if self.values:
            return f"set {names} to {list_values(self.values)}"
        return f"set {names} to a value other than {list_values(self.unless)}"


NamesWith = Callable[[str, tuple[str, ...]], tuple[str, ...]]
"""Maps a trait and names of settings to the values that choose families with this trait."""
Conditions = Mapping[str, tuple[ActsIf, ...]]
"""Conditions by dotted names of settings; all conditions of a setting must hold."""


def acts(name: str, values: Mapping[str, Any], conditions: Conditions) -> bool:
    """Return whether a setting acts. `values`: all settings by their dotted names."""
    return all(_holds(condition, values, conditions) for condition in conditions.get(name, ()))


def names_of_idle(values: Mapping[str, Any], conditions: Conditions) -> list[str]:
    """List the settings that do not act; the result of `acts` is computed once for each setting."""
    acting: dict[str, bool] = {}

    def is_acting(name: str) -> bool:
        if name not in acting:
            acting[name] = all(map(holds, conditions.get(name, ())))
        return acting[name]

    def holds(condition: ActsIf) -> bool:
        for name in condition.names:
            if condition.holds_for(values.get(name)) and is_acting(name):
                return True
        return False

    return [name for name in conditions if not is_acting(name)]


def idle_settings(
    values: Mapping[str, Any], defaults: Mapping[str, Any], conditions: Conditions
) -> list[str]:
    """Explain each setting that does not act but differs from its default."""
    complaints = []
    for name in names_of_idle(values, conditions):
        if values[name] == defaults[name]:
            continue
        # only the first condition that fails is reported
        condition = next(c for c in conditions[name] if not _holds(c, values, conditions))
        now = [format_value(values[setting]) for setting in condition.names]
        is_now = f"that is {now[0]}" if len(now) == 1 else f"they are {' and '.join(now)}"
        complaints.append(
            f"`{name}` applies only if {condition.describe()}, but {is_now}; leave `{name}` out, "
            f"or {condition.advice()}"
        )
    return complaints


def flat(values: Mapping[str, Any], table: str = "") -> dict[str, Any]:
    """Flatten tables to dotted names, to any depth."""
    flattened: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flattened |= flat(value, f"{table}{name}.")
        else:
            flattened[f"{table}{name}"] = value
    return flattened


def format_value(value: object) -> str:
    """Write a value as on the command line."""
    return str(value).lower() if value is None or isinstance(value, bool) else f"{value}"


def list_values(values: tuple[object, ...]) -> str:
    """Write values as a list in a sentence: a, b or c."""
    *most, last = map(format_value, values)
    return f"{', '.join(most)} or {last}" if most else last


def _holds(condition: ActsIf, values: Mapping[str, Any], conditions: Conditions) -> bool:
    """Return whether one of the other settings fulfills the condition and itself acts."""
    return any(
        condition.holds_for(values.get(name)) and acts(name, values, conditions)
        for name in condition.names
    )
