"""Times of the command line."""

import pytest

from heedful.errors import SettingError
from heedful.settings.durations import parse_duration


def test_seconds_minutes_and_hours_are_read():
    assert [parse_duration(text, "--x") for text in ("90s", " 30m", "1.5h")] == [90, 1800, 5400]


@pytest.mark.parametrize("text", ["", "30", "-5m", "0m", "0s", "1d", "m", "99999h", "1e9h"])
def test_what_is_no_time_is_refused_by_the_name_of_the_option(text):
    with pytest.raises(
        SettingError,
        match="--unload-after must be a time above 0 and below 10,000,000 seconds, such as 90s",
    ):
        parse_duration(text, "--unload-after")
