"""
Wheels that a machine with a GPU lacks, and the size of everything that is copied there.

    python -m benchmarks.device_wheels

The machine has Python 3.12, a torch that matches its driver, and common packages, but no network.
Other packages that heedful and its tests need are downloaded to `build/device-wheels`, in the
versions of `constraints.txt`; `benchmarks/device.sh` installs them. The work tree, these wheels and
the data of a training are copied together, so their size has a limit.

CTranslate2 is not among the wheels. Version 4.8 calls `libcublas.so.12`, and such a machine has
CUDA 13; its wheel alone would take 41 MiB.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.report import ROOT

WHEELS = Path("build/device-wheels")
DATA = Path("build/device-data")
"""Data of a training run, packed by `benchmarks.device_training`."""
LIMIT = 45 << 20
"""Maximum number of bytes to copy."""

# Each package is imported by heedful, by its tests, or by another package of this list.
PACKAGES = (
    "annotated-doc",
    "annotated-types",
    "beartype",
    "execnet",
    "iniconfig",
    "jaxtyping",
    "packaging",
    "pluggy",
    "pydantic",
    "pydantic_core",
    "pytest",
    "pytest-timeout",
    "pytest-xdist",
    "rich",
    "sentencepiece",
    "typer",
    "typing-inspection",
    "typing_extensions",
    "wadler_lindig",
)

_PLATFORMS = (
    "manylinux_2_28_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
    "manylinux1_x86_64",
)


def main() -> None:
    """Download the wheels, and print the sizes of everything that is copied."""
    folder = ROOT / WHEELS
    folder.mkdir(parents=True, exist_ok=True)
    for wheel in folder.glob("*.whl"):  # remove other versions of the same packages
        wheel.unlink()
    pins = pins_of((ROOT / "constraints.txt").read_text("utf-8"))
    platforms = [word for platform in _PLATFORMS for word in ("--platform", platform)]
    command = (
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
        *("--only-binary=:all:", "--python-version", "3.12", "--implementation", "cp"),
        *platforms,
        *("--dest", str(folder)),
        *pins,
    )
    subprocess.run(command, check=True)
    sizes = traveling_bytes(ROOT)
    for name, size in sizes.items():
        print(f"{size / (1 << 20):6.1f} MiB  {name}")
    require_room(sizes)


def pins_of(constraints: str) -> list[str]:
    """Return a pin ``name==version`` for each package."""
    lines = [line for line in constraints.splitlines() if "==" in line]
    pins = {line.partition("==")[0]: line for line in lines}
    return [pins[name] for name in PACKAGES]


def traveling_bytes(root: Path) -> dict[str, int]:
    """Count the bytes to copy: all files that git does not ignore, and the two folders."""
    listed = subprocess.run(
        ("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"),
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    paths = {root / name for name in listed.stdout.split("\0") if name}
    sizes = {"work tree": _size(paths)}
    for folder in (WHEELS, DATA):
        sizes[folder.as_posix()] = _size({*(root / folder).rglob("*")} - paths)
    return sizes


def require_room(sizes: Mapping[str, int], limit: int = LIMIT) -> None:
    """Raise if there are too many bytes to copy."""
    total = sum(sizes.values())
    if total > limit:
        parts = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
        raise SystemExit(
            f"at most {limit:,} bytes travel to the machine, but {total:,} would ({parts}); pack "
            "fewer pairs, or remove files that git does not ignore."
        )


def _size(paths: set[Path]) -> int:
    return sum(path.stat().st_size for path in paths if path.is_file())


if __name__ == "__main__":
    main()
