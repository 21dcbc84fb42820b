"""Where what was found out about this machine is kept."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """
    Name the folder of measurements and compiled libraries.

    Returns
    -------
    Path
        It need not exist.

    Notes
    -----
    As the XDG Base Directory Specification says.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "heedful"
