"""
Environment variables that OpenMP, oneDNN and torch read once, when they are loaded.

An idle thread of OpenMP spins while it waits. Without spinning it would have to be woken for each
of the hundred small operations in a step of a search. Without spinning, translating one sentence at
a time would also be half as fast. By default OpenMP spins much longer, which takes cores from
working threads: while other processes are busy, training becomes twenty times slower. So threads
spin for a tenth of a millisecond and then sleep.

This module imports only small modules, because `import heedful` runs it to set these variables.
"""

import os
import sys

WAITING = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "10000"}
"""How idle threads wait."""

SWITCH = "HEEDFUL_OMP"
"""The environment variable that, with the value 0, keeps heedful from setting variables."""

_RECORD = "HEEDFUL_ENVIRONMENT"  # the variables that heedful has set, for its child processes


def set_variables(variables: dict[str, str], replace: bool = False) -> None:
    """
    Set variables that the user has not set, unless torch is already loaded.

    If torch is already loaded, warn if its threads spin.

    `replace`: also replace values that heedful set earlier, in this process or in a parent.
    """
    if os.environ.get(SWITCH) == "0":
        return
    if sys.modules.get("torch") is not None:
        _warn_of_spinning()
        return
    ours = _read_record()
    for name, value in variables.items():
        if name not in os.environ or (replace and name in ours):
            os.environ[name] = ours[name] = value
    if ours:
        os.environ[_RECORD] = " ".join(f"{name}={value}" for name, value in ours.items())


def user_environment() -> dict[str, str]:
    """Copy the environment without the variables that heedful has set, for other programs."""
    ours = _read_record()
    return {
        name: value for name, value in os.environ.items() if name not in ours and name != _RECORD
    }


def _read_record() -> dict[str, str]:
    """Read the variables that heedful has set, except those that were changed since then."""
    pairs = (entry.partition("=") for entry in os.environ.get(_RECORD, "").split())
    return {name: value for name, _, value in pairs if os.environ.get(name) == value}


def _warn_of_spinning() -> None:
    """Warn that idle threads spin, unless there is one thread or the user has set how they wait."""
    threads = getattr(sys.modules["torch"], "get_num_threads", None)  # absent while torch loads
    if not WAITING.keys().isdisjoint(os.environ) or (threads is not None and threads() == 1):
        return
    import warnings  # noqa: PLC0415

    values = " and ".join(f"{name}={value}" for name, value in WAITING.items())
    warnings.warn(
        "torch was imported before heedful, so its idle threads spin, which is slow on a busy "
        f"machine. Import heedful first, or set {values} before Python starts ({SWITCH}=0 hides "
        "this warning).",
        RuntimeWarning,
        stacklevel=4,
    )
