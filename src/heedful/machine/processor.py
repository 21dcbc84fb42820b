"""
Processor cores available to this process, instruction sets, and the cache folder, without torch.

Libraries in the cache are executed, so only this user and root may have write access.
"""

import functools
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

from heedful.errors import SettingError

# More threads than cores are useless but harmless. So the limit is at least this number, if the
# process can start the threads.
_MANY_THREADS = 64


def usable_cores() -> int:
    """Count the cores that this process may use, by its CPU affinity."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def omp_threads() -> int:
    """Read the number of threads in ``OMP_NUM_THREADS``; 0 if it is not set or not a number."""
    value = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(value) if value.isascii() and value.isdigit() else 0


def check_threads(threads: int, name: str = "threads") -> None:
    """Refuse a number of threads that would crash torch."""
    most = max(_MANY_THREADS, 8 * usable_cores())
    if not 0 <= threads <= most:
        raise SettingError(
            f"{name} must be from 0 (the default) to {most}, but is {threads:,}; this process can "
            f"use {usable_cores()} cores."
        )
    if threads > usable_cores() and not can_start_threads(threads):
        raise SettingError(
            f"{name} must be at most the number of threads that this process may start, but is "
            f"{threads:,}; choose fewer."
        )


def can_start_threads(count: int) -> bool:
    """Return whether the system lets this process start `count` more threads."""
    end = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(count):
            thread = threading.Thread(target=end.wait)
            thread.start()
            started.append(thread)
    except RuntimeError:
        return False
    finally:
        end.set()
        for thread in started:
            thread.join()
    return True


def processor_facts(*fields: str) -> list[str]:
    """Return the lines of ``/proc/cpuinfo`` that begin with one of the fields."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.startswith(fields)]


@functools.cache
def int8_levels() -> int:
    """Return the largest absolute value of inputs and weights in 8-bit matrix multiplications."""
    # Only VNNI instructions accumulate in 32 bits; sums in 16 bits overflow with larger values.
    for flags in processor_facts("flags"):
        return 127 if {"avx512_vnni", "avx_vnni"} & set(flags.split()) else 63
    return 63


_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_BYTES = 64 << 20
_MOST_LINKS = 40  # the limit of Linux


def cache_folder() -> Path:
    """Return the cache folder, created if necessary; raise `OSError` if others could change it."""
    folder = _base() / "heedful"
    for part in reversed([folder, *folder.parents]):
        part.mkdir(
            mode=0o700, exist_ok=True
        )  # not `parents=True`, which gives the parents the umask's mode
    for passed in _way_to(folder):
        check_owned(passed, passed.lstat(), sticky=True)
    status = folder.stat()
    check_owned(folder, status)
    if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) & 0o077:
        folder.chmod(0o700)  # only this user or root could write; now only they can read
    return folder


def read_cached(path: Path) -> bytes:
    """Read a file of the cache; raise `OSError` if another user could have written it."""
    # A link could lead out of the folder that was checked, and opening a pipe would block.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        check_owned(path, status)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            raise OSError(f"{path} must be a file of at most {_MOST_BYTES:,} bytes")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def write_cached(path: Path, content: bytes) -> None:
    """Write a file of the cache atomically."""
    temporary_file = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.partial")
    try:
        with open(
            os.open(temporary_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
        ) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary_file.replace(path)
    finally:
        temporary_file.unlink(missing_ok=True)


def check_owned(
    path: Path, status: os.stat_result, *, sticky: bool = False, user: int | None = None
) -> None:
    """Raise `PermissionError` if anyone except the user and root could change a file or folder."""
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid not in (os.geteuid() if user is None else user, 0):
        raise PermissionError(f"{path} must belong to you or root, but belongs to another user")
    # In a sticky folder such as /tmp, others can add files, but not replace existing files.
    if stat.S_ISLNK(status.st_mode) or (sticky and mode & stat.S_ISVTX):
        return
    if mode & _OTHERS_WRITE:
        raise PermissionError(f"{path} must not be writable by others, but has mode {mode:o}")


def _base() -> Path:
    """Return the user's folder for caches; as XDG specifies, relative paths are ignored."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if base.is_absolute():
        return base
    try:
        home = Path.home()
    except RuntimeError:
        home = Path()
    if not home.is_absolute():
        raise FileNotFoundError(
            "there is no home folder; set XDG_CACHE_HOME to the absolute path of a folder"
        )
    return home / ".cache"


def _way_to(path: Path) -> Iterator[Path]:
    """Yield every folder and link on the way to an absolute path."""
    at, rest, links = Path("/"), list(path.parts[1:]), 0
    yield at
    while rest:
        at = at.parent if rest[0] == ".." else at / rest[0]
        del rest[0]
        yield at
        if at.is_symlink():
            links += 1
            if links > _MOST_LINKS:
                raise OSError(f"{path} leads through too many symbolic links")
            target = at.readlink()
            rest = [*target.parts[target.is_absolute() :], *rest]
            at = Path("/") if target.is_absolute() else at.parent
