"""The error message for invalid settings, one paragraph that names each of them."""

from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher
from reprlib import repr as shorten
from typing import Any

from pydantic import ValidationError

from heedful.errors import SettingError
from heedful.settings import foreign_names

_RULES = {
    "finite_number": "a finite number",
    "greater_than": "above {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "below {lt}",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "list_type": "a list",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} characters",
    "string_type": "text",
    "too_long": "a list of at most {max_length} entries",
    "too_short": "a list of at least {min_length} entries",
    "missing": "given",
    "model_type": "a table of settings",
}
"""The rule for a value, by pydantic's error type; names in braces are keys of its `ctx`."""
_LIST_THEM = "`heedful train RECIPE --print-config` lists every setting"


def setting_error(error: ValidationError, table: str, known: Collection[str]) -> SettingError:
    """
    Convert pydantic's errors to one paragraph that names every wrong setting.

    Returns the error to raise, which gives for each setting its dotted name, the rule and the value
    found. The messages of our own checks of several settings already name the settings, so they
    stay unchanged. Every other message is prefixed with the name of its setting.
    """
    complaints = []
    for details in error.errors(include_url=False):
        name = ".".join(str(part) for part in (table, *details["loc"]) if part != "")
        if details["type"] == "extra_forbidden":
            complaints += [unknown_setting(key, known) for key in _leaves(name, details["input"])]
        elif details["type"] == "value_error":
            rule = str(details["ctx"]["error"])
            complaints.append(rule if rule.startswith("`") else _complaint(name, rule, details))
        else:
            complaints.append(_complaint(name, describe_rule(details), details))
    message = "; ".join(complaints)
    return SettingError(message if message.endswith("?") else f"{message}.")


def unknown_setting(name: str, known: Collection[str]) -> str:
    """Report an unknown setting and suggest a similar one."""
    near = known_elsewhere(name, known) or _nearest(name, known)
    return f"unknown setting `{name}`; " + (did_you_mean(near) if near else _LIST_THEM)


def known_elsewhere(name: str, known: Collection[str]) -> list[str]:
    """List the settings, some with a value, that have this name in other toolkits."""
    last = name.rpartition(".")[2].lower().replace("_", "-")
    names = foreign_names.SETTINGS.get(last, ())
    return [setting for setting in names if setting.partition("=")[0] in known]


def did_you_mean(names: Sequence[str]) -> str:
    """Format a suggestion. `names`: at least one name that the user may mean."""
    return "did you mean " + " or ".join(f"`{name}`" for name in names) + "?"


def _nearest(name: str, known: Collection[str]) -> list[str]:
    """List the known names most similar to `name`: by their last part, then by their table."""
    table, _, field = name.rpartition(".")
    scores = {}
    for candidate in known:
        its_table, _, its_field = candidate.rpartition(".")
        likeness = SequenceMatcher(None, field, its_field).ratio()
        if likeness >= 0.6:
            deeper = abs(its_table.count(".") - table.count("."))
            alike = SequenceMatcher(None, table, its_table).ratio()
            scores[candidate] = likeness + (alike - deeper) / 10
    return [candidate for candidate, score in scores.items() if score == max(scores.values())]


def _write_bound(value: object) -> object:
    """Write a bound with commas between thousands and without trailing zeros."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else value


def _leaves(name: str, value: object) -> Iterator[str]:
    """Yield the dotted names of all settings in an unknown table."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}", inner)
    else:
        yield name


def describe_rule(details: Any) -> str:
    """Describe, in our own words, the rule behind one of pydantic's errors."""
    rule = _RULES.get(details["type"])
    message = str(details["msg"]).removeprefix("Value error, ")
    if details["type"] == "value_error" and " is not one of " in message:
        *others, last = message.partition(" is not one of ")[2].rstrip(".").split(", ")
        rule = " or ".join(filter(None, (", ".join(others), last)))
    if rule is None:
        return message.replace("Input should", "must", 1)
    context = details.get("ctx", {})
    if details["type"] == "string_too_short" and context["min_length"] == 1:
        return "must not be empty"
    text = rule.format(**{name: _write_bound(value) for name, value in context.items()})
    if context.get("field_type") == "Dictionary":
        text = text.replace("a list of", "an object of")
    return "must be " + text.replace(" 1 entries", " 1 entry")


def _complaint(name: str, rule: str, details: Any) -> str:
    """Describe the setting, its rule, and the value found."""
    value = details["input"]
    plain = value is None or isinstance(value, bool)
    text = str(value).lower() if plain else shorten(value)
    return f"`{name}` {rule}, but got {text}"
