"""Times such as `90s`, `30m` and `2h` on the command line."""

import re

from heedful.errors import SettingError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str, option: str) -> float:
    """
    Parse a time and return seconds; raise `SettingError`, which names the option, if invalid.

    >>> parse_duration("1.5h", "--budget")
    5400.0
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text.strip())
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not 0 < seconds < 1e7:
        raise SettingError(
            f"{option} must be a time above 0 and below 10,000,000 seconds, such as 90s, 30m or "
            f"2h, but is {text!r}; give a number and a unit (s, m or h)."
        )
    return seconds
