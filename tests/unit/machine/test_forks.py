"""Parallel operations in forks; with models and trainings: tests/cli/test_forks.py."""

import subprocess
import sys

from heedful.machine.forks import allowed_threads

SCRIPT = """
import os, sys, torch
from heedful.machine.devices import resolve_threads

a = torch.ones(600, 600)
threads = resolve_threads(int(sys.argv[1]))

def computes():
    return float((a @ a).double().sum()) == 600.0**3

def fork(then):
    child = os.fork()
    if child == 0:
        os._exit(then())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def child():
    is_right = computes()
    again = resolve_threads(2)
    is_right = is_right and computes()
    # A fork of the fork
    return again if is_right and fork(lambda: not computes()) == 0 else 100

assert computes()
print(threads, fork(child), fork(child), torch.get_num_threads())
"""


def run(threads):
    done = subprocess.run(
        # From Python 3.12 on each fork of a process with threads is warned of, used or idle ones.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SCRIPT, str(threads)],
        capture_output=True,
        text=True,
        check=True,
        timeout=200,  # a fork that waits forever is killed
    )
    return done.stdout.split(), done.stderr


def test_a_fork_of_a_process_with_a_pool_computes_in_one_thread():
    numbers, errors = run(2)
    assert numbers == ["2", "1", "1", "2"]
    assert errors.count("is a fork without the threads of its parent") == 2


def test_a_fork_of_a_process_without_a_pool_has_its_own():
    numbers, errors = run(1)
    assert numbers == ["1", "2", "2", "1"]  # and a fork of such a fork computes, too
    assert errors == ""


def test_this_process_is_no_fork_with_a_lost_pool():
    assert [allowed_threads(threads) for threads in (1, 2, 1)] == [1, 2, 1]
