"""What every test shares: one thread, the real corpora, and the command line as a process."""

import os

# Before torch is imported anywhere; child processes inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent.parent
CI = os.environ.get("CI") == "true"

# A busy machine makes a test slow, not wrong.
settings.register_profile(
    "heedful", deadline=None, derandomize=CI, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("heedful")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Undo what an earlier test asked for with ``torch.set_num_threads``."""
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
def heedful_cli() -> Callable[..., subprocess.CompletedProcess[str]]:
    """
    Run ``python -m heedful`` with arguments, in a process and session of its own.

    Keywords: ``stdin`` (text), ``env`` (overrides; None removes a variable), ``cwd``, and
    ``timeout`` in seconds, after which the whole process group is killed.
    """

    def run(
        *args: object,
        stdin: str = "",
        env: dict[str, str | None] | None = None,
        cwd: Path | None = None,
        timeout: float = 120,
    ) -> subprocess.CompletedProcess[str]:
        path = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        plain = {"PYTHONPATH": os.pathsep.join(path), "NO_COLOR": "1", "COLUMNS": "200"}
        variables = {**os.environ, **plain, **(env or {})}
        process = subprocess.Popen(
            [sys.executable, "-m", "heedful", *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={name: value for name, value in variables.items() if value is not None},
            cwd=cwd,
            encoding="utf-8",
            start_new_session=True,
        )
        try:
            output, errors = process.communicate(stdin, timeout=timeout)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    return run
