"""The switch between our kernels and documented functions of torch: ``HEEDFUL_KERNELS``."""

import functools
import os

from heedful.errors import SettingError

SWITCH = "HEEDFUL_KERNELS"
CHOICES = ("fast", "plain")


@functools.cache
def kernels_choice() -> str:
    """Read the switch, once in a process; ``fast`` if it is not set."""
    choice = os.environ.get(SWITCH) or CHOICES[0]
    if choice not in CHOICES:
        raise SettingError(
            f"{SWITCH} in the environment must be {' or '.join(CHOICES)}, but is {choice!r}; "
            "unset it for the fastest kernels."
        )
    return choice


def is_plain_torch() -> bool:
    """Decide whether everything is computed by documented functions of torch."""
    return kernels_choice() == "plain"
