"""The command line starts at once, and loads nothing that it does not need."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
HEAVY = ["torch", "numpy", "sentencepiece", "sacrebleu", "matplotlib", "jaxtyping"]

# Seconds on the processor: what the start takes when nobody else is at work, whoever is now. The
# limit holds where a bare Python starts within BARE_START, and in proportion on slower machines.
LIMIT = 0.3
BARE_START = 0.02


def _python(*args: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(SOURCE), "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, *args],
        capture_output=True,
        text=True,
        env=environment,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def _processor_seconds(*args: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _python(*args)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _loaded_by(statement: str) -> list[str]:
    code = f"import sys\n{statement}\nprint([name for name in {HEAVY} if name in sys.modules])"
    return _python("-c", code).stdout.splitlines()[-1]


def test_help_starts_within_a_third_of_a_second():
    # Side by side, so that a slow moment slows both; the best of several is the machine at rest.
    # On a busy machine, such a moment comes late.
    commands = [("-c", "pass"), ("-m", "heedful", "--help")]
    rounds, full, limit = [], 1.0, 0.0
    while full >= limit and len(rounds) < 30:
        rounds += [[_processor_seconds(*command) for command in commands] for _ in range(5)]
        bare, full = map(min, zip(*rounds, strict=True))
        limit = LIMIT * max(1, bare / BARE_START)
    assert full < limit, f"--help took {full:.3f} s, may take {limit:.3f} s"


def test_little_is_loaded_before_ctrl_c_is_quiet():
    code = "import sys\nimport heedful.__main__\nprint(*sys.modules)"
    loaded = set(_python("-S", "-c", code).stdout.split())
    assert not loaded & {"typing", "pkgutil", "re"}


def test_help_loads_no_torch_and_nothing_else_that_is_heavy():
    run_help = (
        "sys.argv = ['heedful', '--help']\n"
        "from heedful.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code"
    )
    assert _loaded_by(run_help) == "[]"


def test_import_heedful_loads_nothing_that_is_heavy():
    assert _loaded_by("import heedful") == "[]"


def test_what_counts_as_heavy_is_seen_when_it_is_loaded():
    assert _loaded_by("import numpy") == "['numpy']"


@pytest.mark.parametrize(
    ("closed", "told"), [(">&-", b"heedful: Bad file descriptor.\n"), ("2>&-", b""), ("<&-", b"")]
)
def test_an_output_that_was_closed_gives_no_traceback(closed, told):
    command = f"PYTHONPATH='{SOURCE}' '{sys.executable}' -m heedful --version {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=240, check=False)
    assert done.stderr == told
    assert done.returncode == (1 if told else 0)
