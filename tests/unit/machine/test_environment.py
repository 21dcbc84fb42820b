"""Processes of their own: what is set before OpenMP is loaded is read once."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from heedful.machine.environment import set_variables, user_environment

OPENMP = ("OMP_", "GOMP_", "HEEDFUL_", "ONEDNN_", "LRU_")
DEFAULT_SPINS = 300_000  # of libgomp's own
# What torch loads first of all: its library of OpenMP, in a tenth of the time.
LIBRARIES = Path(find_spec("torch").origin).parent.glob("lib/libgomp*")
LOADED = "".join(f"; import ctypes; ctypes.CDLL({str(path)!r})" for path in LIBRARIES)
LOADED = LOADED or "; import torch"
COMMAND = f"""
import sys
from heedful.cli.main import main
try:
    main()
except SystemExit:
    pass{LOADED}
"""


def python(code, *arguments, **variables):
    """Run a program in the user's environment, with a report of OpenMP when it is loaded."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(OPENMP)}
    # Two threads, whatever the machine has: a single one never waits.
    report = {"OMP_DISPLAY_ENV": "verbose", "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        encoding="utf-8",
        env=clean | report | variables,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def read_by_openmp(done):
    """Return the policy and the number of spins that OpenMP has read."""
    policy = re.search(r"OMP_WAIT_POLICY = '(\w+)'", done.stderr)
    spins = re.search(r"GOMP_SPINCOUNT = '(\w+)'", done.stderr)
    assert policy and spins, done.stderr
    return policy[1], int(spins[1])


def test_import_sets_how_threads_wait_before_openmp_is_loaded():
    code = "import sys, heedful\nprint('torch' in sys.modules)\nheedful.Translator"
    done = python(code)
    assert done.stdout == "False\n"
    assert read_by_openmp(done) == ("PASSIVE", 10_000)
    assert "Warning" not in done.stderr


def test_values_of_the_user_stay():
    shown = "\nimport os; print(os.environ['OMP_WAIT_POLICY'])"
    done = python("import heedful" + LOADED + shown, GOMP_SPINCOUNT="77")
    assert done.stdout == "passive\n"
    assert read_by_openmp(done) == ("PASSIVE", 77)


@pytest.mark.parametrize(
    ("arguments", "spins"),
    [(("train", "tiny", "--print-config"), 1_000), (("translate", "--help"), 10_000)],
)
def test_commands_wait_as_long_as_their_work_needs(arguments, spins):
    assert read_by_openmp(python(COMMAND, *arguments)) == ("PASSIVE", spins)


def test_the_switch_leaves_the_environment_alone():
    shown = "\nimport os; print(*sorted(os.environ))"
    bare = python("import torch" + shown, HEEDFUL_OMP="0")
    for code in ("import heedful" + LOADED, "import torch, heedful"):
        done = python(code + shown, HEEDFUL_OMP="0")
        assert done.stdout == bare.stdout
        assert read_by_openmp(done)[1] == DEFAULT_SPINS
        assert "Warning" not in done.stderr
    command = python(COMMAND + shown.replace("print", "    print"), "--version", HEEDFUL_OMP="0")
    assert command.stdout.splitlines()[-1:] == bare.stdout.splitlines()
    assert read_by_openmp(command)[1] == DEFAULT_SPINS


def test_torch_before_heedful_is_told_once_what_to_do():
    code = "import torch, heedful, os\nheedful.Translator\nprint('GOMP_SPINCOUNT' in os.environ)"
    done = python(code)
    assert done.stdout == "False\n"
    (line,) = [line for line in done.stderr.splitlines() if "Warning" in line]
    assert line.startswith("<string>:1: RuntimeWarning: torch was imported before heedful")
    assert "Import heedful first" in line
    assert "OMP_WAIT_POLICY=passive and GOMP_SPINCOUNT=10000 before Python starts" in line


@pytest.mark.parametrize("variable", ["OMP_WAIT_POLICY=active", "OMP_NUM_THREADS=1"])
def test_torch_before_heedful_is_no_matter_where_the_user_chose_or_no_thread_waits(variable):
    name, _, value = variable.partition("=")
    assert "Warning" not in python("import torch, heedful", **{name: value}).stderr


@pytest.fixture
def no_torch(monkeypatch):
    """An environment that nobody has changed, before torch is loaded."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    for name in filter(lambda name: name.startswith(OPENMP), tuple(os.environ)):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HEEDFUL_ENVIRONMENT", "")  # and removed afterwards
    monkeypatch.setattr(os, "environ", os.environ.copy())


@pytest.mark.usefixtures("no_torch")
def test_what_heedful_set_is_replaced_by_heedful_alone():
    set_variables({"GOMP_SPINCOUNT": "10", "OMP_WAIT_POLICY": "passive"})
    set_variables({"GOMP_SPINCOUNT": "20", "LRU_CACHE_CAPACITY": "3"})
    assert os.environ["GOMP_SPINCOUNT"] == "10"
    set_variables({"GOMP_SPINCOUNT": "30"}, replace=True)
    assert os.environ["GOMP_SPINCOUNT"] == "30"
    os.environ["GOMP_SPINCOUNT"] = "40"  # by the user
    set_variables({"GOMP_SPINCOUNT": "50"}, replace=True)
    assert os.environ["GOMP_SPINCOUNT"] == "40"
    left = user_environment()
    assert left["GOMP_SPINCOUNT"] == "40"
    assert left.keys().isdisjoint({"OMP_WAIT_POLICY", "LRU_CACHE_CAPACITY", "HEEDFUL_ENVIRONMENT"})
