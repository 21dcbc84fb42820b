"""Whether work takes time in proportion to the size of what it is given."""

import gc
from collections.abc import Callable
from time import process_time

# Eight times the size takes eight times as long; quadratic work takes sixty-four times.
GROWTH = 8
LIMIT = 24
# Below this a clock and a first call weigh more than the work.
SHORTEST_SECONDS = 0.002
TRIES = 3


def assert_grows_linearly(work: Callable[[int], object], size: int) -> None:
    """Fail when `work(8 * size)` takes more than 24 times as long as `work(size)`.

    Times are compared with each other, so that a slow or busy machine changes nothing. The long
    work is done again only where it seemed to take too long.
    """
    short = max(min(_seconds(work, size) for _ in range(TRIES)), SHORTEST_SECONDS)
    ratios: list[float] = []
    while len(ratios) < TRIES and min(ratios, default=LIMIT) >= LIMIT:
        ratios.append(_seconds(work, GROWTH * size) / short)
    assert min(ratios) < LIMIT, f"{GROWTH} times the size takes {min(ratios):.0f} times as long"


def _seconds(work: Callable[[int], object], size: int) -> float:
    """Return the processor time of work, in which no garbage is collected."""
    gc.disable()
    try:
        begun = process_time()
        work(size)
        return process_time() - begun
    finally:
        gc.enable()
