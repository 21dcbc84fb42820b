"""Two ways to do the same, timed in turns, so that a slow minute of the machine affects both."""

import statistics
import time
from collections.abc import Callable, Mapping

_WARM_UPS = 3


def in_turn(ways: Mapping[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """
    Return median milliseconds of both ways, and the median `ratio` of the second to the first.

    Some turns before the `turns` warm up.
    """
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(-_WARM_UPS, turns):
        for name, work in ways.items():
            began = time.perf_counter()
            work()
            if turn >= 0:
                times[name].append(1000 * (time.perf_counter() - began))
    ratios = [second / first for first, second in zip(*times.values(), strict=True)]
    medians = {name: statistics.median(each) for name, each in times.items()}
    return medians | {"ratio": statistics.median(ratios)}
