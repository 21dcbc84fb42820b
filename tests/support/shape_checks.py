"""
Checks of the shapes and types in heedful's signatures, for the first calls of each test.

A check takes some fifty microseconds, and a training of a hundred steps calls checked functions a
hundred thousand times, always with the same shapes. So each test checks its first calls, which are
a pass of a model and several steps of a search, and runs the others unchecked.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import jaxtyping
from beartype import beartype

# A step of the trainer's tests makes about 1,600 checked calls; most of a step is one more layer.
CHECKED_CALLS = 800
_calls = 0


def begin_test() -> None:
    """Check signatures again, from the first call of a test on."""
    global _calls  # noqa: PLW0603
    _calls = 0
    jaxtyping.config.update("jaxtyping_disable", False)


def first_calls(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check a function with beartype until the test has made its share of checked calls."""
    checked: Callable[..., Any] | None = None

    @wraps(function)
    def count(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked
        global _calls  # noqa: PLW0603
        checked = checked or beartype(function)  # takes a millisecond; most are never called
        _calls += 1
        if _calls >= CHECKED_CALLS:
            jaxtyping.config.update("jaxtyping_disable", True)
        return checked(*args, **kwargs)

    return count
