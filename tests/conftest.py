"""What every test shares: one thread, the real corpora, and the command line as a process."""

import os

# Before torch is imported anywhere; child processes inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import gc
import json
import math
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

from tests.support.fork_client import Zygote
from tests.support.shape_checks import begin_test, check_shapes

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parent.parent
collect_ignore = ["support"]  # holds neither tests nor examples
CI = os.environ.get("CI") == "true"
# Seconds since 1970. A machine of half the speed does not finish the long tests in the time that
# continuous integration has; pytest lists the tests that did not begin before this time.
LONG_TESTS_END = float(os.environ.get("HEEDFUL_LONG_TESTS_END", "inf"))

# A busy machine makes a test slow, not wrong. `make soak` tries the hundred examples that
# hypothesis itself would.
settings.register_profile(
    "soak", deadline=None, derandomize=CI, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("heedful", settings.get_profile("soak"), max_examples=30)
settings.load_profile("heedful")

# Ten thousand tests are collected, and none of them is garbage.
gc.disable()


def pytest_configure(config: pytest.Config) -> None:
    """Check the shapes in heedful's signatures, unless ``-p no:jaxtyping`` was given."""
    if not config.pluginmanager.is_blocked("jaxtyping"):
        check_shapes()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Collect garbage again, but never visit what the collection of tests has made."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """What a test and its fixtures draw does not depend on the tests that came before."""
    if time.time() > LONG_TESTS_END:
        pytest.skip("not run: the time for long tests is over (HEEDFUL_LONG_TESTS_END)")
    begin_test()
    random.seed(1)
    if torch := sys.modules.get("torch"):
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed_all(1)
        torch.default_generator.manual_seed(1)  # torch.manual_seed formats the long call stack


_SHORT = 10_000


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Say where long bytes differ; pytest would look for the shortest difference for minutes."""
    if not (op == "==" and isinstance(left, bytes) and isinstance(right, bytes)):
        return None
    if max(len(left), len(right)) < _SHORT:
        return None
    pairs = enumerate(zip(left, right, strict=False))
    place = next((at for at, (mine, theirs) in pairs if mine != theirs), None)
    at = "in length alone" if place is None else f"first at byte {place:,}"
    return [f"{len(left):,} and {len(right):,} bytes differ, {at}"]


# Written at the top of a file of tests, so that it is not even imported.
TASK_OF_FILE = re.compile(r'^pytestmark = pytest\.mark\.task\("(\w+)"\)$', re.MULTILINE)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Do not import the tests of a family or task that was removed."""
    from heedful.tasks.registry import task_names
    from tests.support.families import missing_of_file

    if collection_path.suffix != ".py":
        return None
    tasks = TASK_OF_FILE.findall(collection_path.read_text(encoding="utf-8"))
    is_left_out = {*tasks} - {*task_names()} or missing_of_file(collection_path)
    return True if is_left_out else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for no examples in the docstrings of tests, which have none."""
    return [part for part in (yield) if not isinstance(part, DoctestModule)]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of a family or task that was removed; pytest prints how many."""
    from heedful.tasks.registry import task_names
    from tests.support.families import missing

    here, gone = [], []
    for item in items:
        families = chain.from_iterable(mark.args for mark in item.iter_markers("family"))
        tasks = chain.from_iterable(mark.args for mark in item.iter_markers("task"))
        (gone if missing(families) or {*tasks} - {*task_names()} else here).append(item)
    if gone:
        config.hook.pytest_deselected(items=gone)
        items[:] = here
    if math.isfinite(LONG_TESTS_END):  # each time, other files come last
        files = list(dict.fromkeys(item.path for item in items))
        random.Random(LONG_TESTS_END).shuffle(files)
        items.sort(key=lambda item: files.index(item.path))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Undo ``torch.set_num_threads`` of an earlier test."""
    yield
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


@pytest.fixture(scope="session")
def corpora() -> Path:
    """Folder of the real corpora; without it tests are skipped, and fail where CI=true."""
    named = os.environ.get("HEEDFUL_DATA", "")
    if named and Path(named).is_dir():
        return Path(named).resolve()
    came = f"no folder {named!r}" if named else "nothing"
    reason = f"HEEDFUL_DATA must name the folder of the corpora; it names {came}"
    if CI:
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def compiled() -> None:
    """The library of C functions; without a compiler tests are skipped, and fail where CI=true."""
    from heedful.kernels.native.product import why_not_native

    if missing := why_not_native():
        reason = f"a C compiler must be there to test what is compiled, but {missing}"
        if CI:
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Chromium of this system; without it tests are skipped, and fail where CI=true."""
    # For one file of tests, not longer: while it is there, asyncio.run is not.
    found = filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    program = next(found, None)
    if program is None:
        reason = "Chromium must be there to test pages (Debian: apt-get install chromium)"
        if CI:
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # A browser that asks the network for nothing of its own.
        quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        started = playwright.chromium.launch(
            executable_path=program, args=["--disable-gpu", "--disable-quic", *quiet]
        )
        yield started
        started.close()


def _variables(env: dict[str, str | None] | None = None) -> dict[str, str]:
    """The environment of a command: this checkout, no colors, wide lines."""
    path = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    plain = {"PYTHONPATH": os.pathsep.join(path), "NO_COLOR": "1", "COLUMNS": "200"}
    variables = {**os.environ, **plain, **(env or {})}
    return {name: value for name, value in variables.items() if value is not None}


@pytest.fixture(scope="session")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """The process that commands are forked from."""
    made = Zygote(tmp_path_factory.mktemp("zygote"), _variables())
    yield made
    made.process.communicate(timeout=240)


@pytest.fixture(scope="session")
def heedful_cli(zygote: Zygote) -> Callable[..., subprocess.CompletedProcess[str]]:
    """
    Run the ``heedful`` command with arguments, in a process and session of its own.

    Keywords: ``stdin`` (text), ``env`` (overrides; None removes a variable), ``cwd``, and
    ``timeout`` in seconds, after which it is killed.
    """

    def run(
        *args: object,
        stdin: str = "",
        env: dict[str, str | None] | None = None,
        cwd: Path | None = None,
        timeout: float = 500,
    ) -> subprocess.CompletedProcess[str]:
        started = zygote.start(*args, stdin=stdin, cwd=cwd, environ=_variables(env))
        output, errors = started.communicate(timeout)
        return subprocess.CompletedProcess(started.args, started.returncode, output, errors)

    return run


DRAW = """
import json
from heedful.data.toy_grammar.corpus import split_aligned

pairs, held_out = split_aligned(1500, 40, seed=1)
links = [[source, target, *map(sorted, links)] for source, target, *links in held_out]
print(json.dumps([pairs, links]))
"""


@pytest.fixture(scope="session")
def grammar(heedful_cli: Callable[..., Any]) -> tuple[list[Any], list[Any]]:
    """
    Pairs to train on, and some that are not among them with their links.

    Drawn in a process of its own, where the types of every call are not checked.
    """
    from heedful.data.toy_grammar.corpus import AlignedPair

    pairs, held_out = json.loads(heedful_cli("-c", DRAW).stdout)
    links = [[frozenset(map(tuple, links)) for links in pair[2:]] for pair in held_out]
    aligned = [AlignedPair(*pair[:2], *both) for pair, both in zip(held_out, links, strict=True)]
    return [tuple(pair) for pair in pairs], aligned
