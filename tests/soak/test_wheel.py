"""The wheel brings its compiled functions, and needs no compiler where it is installed."""

import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from heedful.kernels.native.variants import VARIANTS

ROOT = Path(__file__).parents[2]
PROGRAM = """
import torch
from heedful.kernels.native.product import NativeInt8Linear, native_products
from heedful.kernels.linear import Int8Linear
print(native_products()._name)
weight, x = torch.randn(64, 32), torch.randn(5, 32)
native = NativeInt8Linear(weight, None)
plain = Int8Linear(weight, None, levels=native.levels)
assert (native(x) - plain(x)).norm() < 1e-2 * plain(x).norm()
"""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="libraries are built for Linux on x86",
)


def build(folder, **variables):
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT]
    subprocess.run(command, check=True, env={**os.environ, **variables})
    (wheel,) = folder.iterdir()
    return wheel


def test_the_wheel_runs_8_bits_without_a_compiler(tmp_path):
    wheel = build(tmp_path / "wheels")
    assert wheel.name.endswith("-py3-none-manylinux_2_28_x86_64.whl")
    with zipfile.ZipFile(wheel) as archive:
        libraries = [Path(name).name for name in archive.namelist() if name.endswith(".so")]
        archive.extractall(tmp_path / "installed")
    assert sorted(libraries) == sorted(f"steps-{name}.so" for name in VARIANTS)
    variables = {
        "PYTHONPATH": str(tmp_path / "installed"),
        "PATH": str(tmp_path / "no-compiler"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | variables,
    )
    assert done.stdout.startswith(f"{tmp_path}/installed/heedful/kernels/native/steps-")
    assert done.stderr == ""
    assert not (tmp_path / "cache").exists()


def test_a_wheel_without_libraries_fits_every_platform(tmp_path):
    wheel = build(tmp_path / "wheels", HEEDFUL_NATIVE="0")
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.endswith(".so")]
        assert [name for name in archive.namelist() if name.endswith("native/steps.c")]
