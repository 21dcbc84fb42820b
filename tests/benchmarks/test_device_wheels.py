"""What a machine with a GPU is brought: pinned wheels, in a size that can travel."""

import os
import re
import subprocess
import sys
import zipfile

import pytest
from benchmarks.device_wheels import (
    DATA,
    LIMIT,
    PACKAGES,
    WHEELS,
    pins_of,
    require_room,
    traveling_bytes,
)
from benchmarks.report import ROOT


def test_each_package_is_pinned():
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = pins_of(constraints)
    assert [pin.partition("==")[0] for pin in pins] == list(PACKAGES)
    assert {*pins} <= {*constraints.splitlines()}


def test_the_work_tree_leaves_room_for_wheels_and_data():
    assert traveling_bytes(ROOT)["work tree"] < LIMIT - (30 << 20)


@pytest.fixture
def tree(tmp_path):
    """A repository of 3 bytes for git, 20 that it ignores, and 700 in the two folders."""
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    sizes = {"a": 1, "b c": 2, "runs/x": 20, WHEELS / "w.whl": 400, DATA / "in/ids.xz": 300}
    for name, size in sizes.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    (tmp_path / ".git" / "info" / "exclude").write_text("build\nruns\n", encoding="utf-8")
    subprocess.run(["git", "-C", tmp_path, "add", "a"], check=True)
    return tmp_path


def test_all_that_travels_is_counted(tree):
    expected = {"work tree": 3, WHEELS.as_posix(): 400, DATA.as_posix(): 300}
    assert traveling_bytes(tree) == expected
    (tree / "b c").unlink()
    (tree / "a").unlink()  # git still lists it
    assert traveling_bytes(tree)["work tree"] == 0


def test_too_much_is_refused(tree):
    sizes = traveling_bytes(tree)
    require_room(sizes, limit=703)
    with pytest.raises(SystemExit, match=re.escape("at most 702 bytes travel to the machine")):
        require_room(sizes, limit=702)


def test_the_script_installs_the_wheels_and_runs_a_command(tmp_path):
    (tmp_path / WHEELS).mkdir(parents=True)
    (tmp_path / "src").symlink_to(ROOT / "src")
    wheel = tmp_path / WHEELS / "carried-1.0-py3-none-any.whl"
    about = "carried-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("carried.py", "there = 'from the wheel'\n")
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: carried\nVersion: 1.0")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    program = "import carried, heedful; print(carried.there, heedful.__version__)"
    site = {"PYTHON": sys.executable, "SITE": str(tmp_path / "site")}
    environment = os.environ | site | {"OUT": str(tmp_path / "out")}
    done = subprocess.run(
        ["sh", ROOT / "benchmarks" / "device.sh", "run", sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("from the wheel 0.")
    assert "torch" in (tmp_path / "out" / "info.txt").read_text(encoding="utf-8")
