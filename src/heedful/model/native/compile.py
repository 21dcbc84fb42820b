"""
From a C file to functions, once for each machine.

The compiler is whatever `cc` is (or the environment's ``CC``). The library is kept in the user's
cache folder under a name made of the sources, the compiler's options and the processor, so it is
compiled again when one of them changes. Where there is no compiler, or it fails, there is no
library, and the caller does without.
"""

import ctypes
import functools
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from heedful.machine.cache import cache_folder
from heedful.machine.processor import processor_facts

# Sums may be taken in another order, so that they go through vectors. Not -ffast-math: a library
# linked with it makes the whole process round the smallest numbers to zero.
_OPTIONS = (
    *("-O3", "-march=native", "-std=c11", "-fopenmp", "-fPIC", "-shared"),
    *("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno"),
)
_SECONDS = 60


@functools.cache
def native_library(name: str) -> ctypes.CDLL | None:
    """
    Compile a C file of this package, or load what was compiled before.

    Parameters
    ----------
    name : str
        The file without its ending.

    Returns
    -------
    ctypes.CDLL or None
        None where it cannot be had: no compiler, no place to write, not Linux.

    Notes
    -----
    Takes about a second the first time. ``HEEDFUL_NATIVE=0`` in the environment turns it off.
    """
    command = shlex.split(os.environ.get("CC", "cc"))
    if os.environ.get("HEEDFUL_NATIVE") == "0" or sys.platform != "linux" or not command:
        return None
    source = Path(__file__).with_name(f"{name}.c")
    library = cache_folder() / f"{name}-{_fingerprint(source, command)}.so"
    try:
        if not library.exists():
            if shutil.which(command[0]) is None:
                return None
            _compile([*command, *_OPTIONS, str(source)], library)
        return ctypes.CDLL(str(library))
    except (OSError, subprocess.SubprocessError):
        return None


def _compile(command: list[str], library: Path) -> None:
    """Compile beside the final name, so that nobody loads half a library."""
    library.parent.mkdir(parents=True, exist_ok=True)
    beside = library.with_suffix(f".{os.getpid()}.partial")
    try:
        subprocess.run(
            [*command, "-o", str(beside), "-lm"],
            check=True,
            capture_output=True,
            timeout=_SECONDS,
        )
        beside.replace(library)
    finally:
        beside.unlink(missing_ok=True)


def _fingerprint(source: Path, command: list[str]) -> str:
    """Name what a library holds for."""
    files = [source, *sorted(source.parent.glob("*.h"))]
    about = [file.read_bytes() for file in files]
    about += [" ".join((*command, *_OPTIONS)).encode(), _processor()]
    return hashlib.sha256(b"\n".join(about)).hexdigest()[:16]


def _processor() -> bytes:
    """Tell processors apart by what they can do: a cache folder may be shared among machines."""
    return "".join(sorted(set(processor_facts("flags", "model name")))).encode()
