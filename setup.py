"""
The wheel's compiled part: C functions for translation, a library for each kind of processor.

All else is in pyproject.toml. Where there is no Linux on x86 or no C compiler, or with
HEEDFUL_NATIVE=0 in the environment, the wheel is without them and fits every platform.
"""

import os
import platform
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

_NATIVE = Path("src/heedful/kernels/native")
_LIBRARY = "steps"
_PLATFORM, _GLIBC = "manylinux_2_28_x86_64", (2, 28)  # as torch's own wheels


def compiler() -> list[str]:
    """Return the command of the C compiler; empty where nothing is to be compiled."""
    if os.environ.get("HEEDFUL_NATIVE") == "0":
        return []
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return []
    command = shlex.split(os.environ.get("CC", "cc"))
    return command if command and shutil.which(command[0]) else []


class DistributionWithLibraries(Distribution):
    """Goes where a platform's files are if libraries are in it."""

    def has_ext_modules(self) -> bool:
        """Say whether something is compiled."""
        return bool(compiler())


class BuildWithLibraries(build_py):
    """Copies the modules, and compiles beside them."""

    def run(self) -> None:
        """Build; an editable installation compiles when it first needs the functions."""
        super().run()
        command = compiler()
        if not command or self.editable_mode:
            return
        found = runpy.run_path(str(_NATIVE / "variants.py"))
        folder = Path(self.build_lib, *_NATIVE.parts[1:])
        running = {}
        for name, (_, chosen) in found["VARIANTS"].items():
            file = folder / f"{_LIBRARY}-{name}.so"
            source = str(_NATIVE / f"{_LIBRARY}.c")
            words = [*command, *found["OPTIONS"], *chosen, source, "-o", str(file)]
            running[file] = subprocess.Popen([*words, *found["LIBRARIES"]])
        codes = [process.wait() for process in running.values()]
        if any(codes):
            sys.exit(
                f"The C compiler {command[0]} failed; GCC 11 or a later one is needed. "
                "CC names another; HEEDFUL_NATIVE=0 builds without compiled functions."
            )


class PlatformWheel(bdist_wheel):
    """A wheel for any Python 3, on one platform if libraries are in it."""

    def get_tag(self) -> tuple[str, str, str]:
        """Name the platform: manylinux where the libraries need no newer C library."""
        if self.root_is_pure:
            return super().get_tag()
        local: Any = super().get_tag()[2]
        needed = [
            (int(major), int(minor))
            for file in Path(self.bdist_dir).rglob(f"{_LIBRARY}-*.so")
            for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", file.read_bytes())
        ]
        return "py3", "none", _PLATFORM if needed and max(needed) <= _GLIBC else local


setup(
    distclass=DistributionWithLibraries,
    cmdclass={"build_py": BuildWithLibraries, "bdist_wheel": PlatformWheel},
)
