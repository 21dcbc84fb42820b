"""
C functions from the wheel, or compiled on this machine and cached.

A wheel for Linux on x86 has a library for each kind of processor (`variants.py`). Elsewhere, as in
a checkout, the compiler `cc` (or the environment's ``CC``) compiles a library into the user's cache
folder. The name of the library depends on the sources, the compiler's options and the processor. A
change to any of these causes a new compilation. The name also contains the library's SHA-256,
because loading a truncated library would end the process. If there is no compiler, or it fails,
there is no library, and callers compute without it.
"""

import ctypes
import hashlib
import logging
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from heedful.kernels.native.variants import LIBRARIES, OPTIONS, VARIANTS
from heedful.machine.processor import cache_folder, processor_facts, read_cached, write_cached

_NATIVE = ("-march=native",)
_SECONDS = 60
_log = logging.getLogger("heedful")
_LOAD = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"


Functions = Callable[[ctypes.CDLL], Sequence[str]]
"""Maps a loaded library to the names of the functions that it must have."""


class NoLibrary(Exception):
    """Raised if there are no compiled functions; its text gives the reason."""


def native_library(name: str, functions: Functions = lambda _: ()) -> ctypes.CDLL:
    """
    Load the library of a C file of this package, or compile the file. `name`: the file's stem.

    ``HEEDFUL_NATIVE`` in the environment: ``0`` disables compiled functions, ``compile`` compiles
    for this processor even if the wheel has a library. Raises `NoLibrary` if no library with all
    functions is available.
    """
    chosen = os.environ.get("HEEDFUL_NATIVE")
    if chosen == "0":
        raise NoLibrary("HEEDFUL_NATIVE=0 turned them off")
    if sys.platform != "linux":
        raise NoLibrary("they are compiled on Linux only")
    source = Path(__file__).with_name(f"{name}.c")
    if chosen != "compile" and (built := built_library(source)) is not None:
        try:
            return _load(built, functions)
        except OSError as error:
            _log.warning("heedful: %s cannot be loaded: %s", built.name, error)
    command = _compiler()
    stem = f"{name}-{_fingerprint(source, command)}"
    try:
        folder = cache_folder()
        if os.statvfs(folder).f_flag & os.ST_NOEXEC:
            raise NoLibrary(f"libraries cannot be loaded from {folder}, which is mounted noexec")
        cached = _cached_library(folder, stem)
        if cached is not None:
            return _load(cached, functions)
        _log.warning("heedful: compiling C functions for this processor, once (up to 20 seconds)")
        words = [*command, *OPTIONS, *_NATIVE, str(source)]
        return _compile(words, folder, stem, functions)
    except OSError as error:
        where = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise NoLibrary(where) from error


def built_library(source: Path) -> Path | None:
    """Find the best library of the wheel that this processor can run."""
    for name, (needed, _) in VARIANTS.items():
        path = source.with_name(f"{source.stem}-{name}.so")
        if needed <= processor_flags() and path.exists():
            return path
    return None


def processor_flags() -> set[str]:
    """List the processor's instruction sets, with their names in /proc/cpuinfo."""
    return {flag for line in processor_facts("flags") for flag in line.split()}


def _compiler() -> list[str]:
    """Return the compiler command as a list of words."""
    compiler = os.environ.get("CC", "cc")
    try:
        command = shlex.split(compiler)
    except ValueError as error:
        raise NoLibrary(f"CC must be a command, but is {compiler!r} ({error})") from error
    if not command or shutil.which(command[0]) is None:
        raise NoLibrary(f"there is no C compiler {compiler!r}; install one, or name it in CC")
    return command


def _cached_library(folder: Path, stem: str) -> Path | None:
    """Find a cached library that is intact."""
    for path in sorted(folder.glob(f"{stem}-*.so")):
        try:
            if path.stem == f"{stem}-{_digest(read_cached(path))}":
                return path
            path.unlink()
        except OSError:
            continue  # not a file, deleted, or of another user: compile again
    return None


def _compile(command: list[str], folder: Path, stem: str, functions: Functions) -> ctypes.CDLL:
    """Compile and load a library; cache it if it loads."""
    with tempfile.TemporaryDirectory(
        prefix=".compile-", dir=folder, ignore_cleanup_errors=True
    ) as own:
        library_file = Path(own) / f"{stem}.so"
        try:
            subprocess.run(
                [*command, "-o", str(library_file), *LIBRARIES],
                check=True,
                capture_output=True,
                timeout=_SECONDS,
            )
            # Loading a truncated library ends the process, so another process tries it first.
            tried = subprocess.run(
                [sys.executable or "python3", "-I", "-S", "-c", _LOAD, str(library_file)],
                check=False,
                capture_output=True,
                timeout=_SECONDS,
            )
        except subprocess.CalledProcessError as error:
            messages = error.stderr.decode(errors="replace").strip().splitlines()
            why = next((line for line in messages if "error" in line), " ".join(messages[:1]))
            code = f"exit code {error.returncode}"
            raise NoLibrary(f"the compiler {command[0]} failed: {why or code}") from error
        except subprocess.TimeoutExpired as error:
            raise NoLibrary(
                f"the compiler {command[0]} took more than {_SECONDS} seconds"
            ) from error
        if tried.returncode < 0:
            raise NoLibrary(f"the library that the compiler {command[0]} wrote is incomplete")
        library = _load(library_file, functions)
        content = library_file.read_bytes()
        write_cached(folder / f"{stem}-{_digest(content)}.so", content)
        return library


def _load(path: Path, functions: Functions) -> ctypes.CDLL:
    """Load a library and check that it has all the functions."""
    library = ctypes.CDLL(str(path))
    missing = [name for name in functions(library) if not hasattr(library, name)]
    if missing:
        raise NoLibrary(
            f"the library {path} has no {', '.join(missing)}; perhaps CC is not a C compiler"
        )
    return library


def _digest(content: bytes) -> str:
    """Return the SHA-256 of a library."""
    return hashlib.sha256(content).hexdigest()


def _fingerprint(source: Path, command: list[str]) -> str:
    """Compute the cache key of a library."""
    files = [source, *sorted(source.parent.glob("*.h"))]
    about = [file.read_bytes() for file in files]
    about += [os.fsencode(" ".join((*command, *OPTIONS, *_NATIVE))), _processor()]
    return hashlib.sha256(b"\n".join(about)).hexdigest()[:16]


def _processor() -> bytes:
    """Describe the processor, because machines that share a cache folder may differ."""
    return "".join(sorted(set(processor_facts("flags", "model name")))).encode()
