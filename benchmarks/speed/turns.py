"""Two ways to do the same work, timed in turns, so that slow moments of the machine affect both."""

import statistics
from collections.abc import Callable, Mapping

from heedful.experiments.process import time_in_turns

_WARM_UPS = 3


def in_turn(ways: Mapping[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """
    Return median milliseconds of both ways, and the median `ratio` of the second to the first.

    Some turns before the timed turns serve as a warm-up.
    """
    rounds = time_in_turns([*ways.values()], _WARM_UPS + turns)[_WARM_UPS:]
    first, second = (1000 * statistics.median(column) for column in zip(*rounds, strict=True))
    ratio = statistics.median(slower / faster for faster, slower in rounds)
    return dict(zip(ways, (first, second), strict=True)) | {"ratio": ratio}
