"""Translating a long text needs no more memory than a short one, and keeps its order."""

import subprocess
import sys
import threading
import time

import pytest

from heedful.data.grammar import sample_pairs
from heedful.workflow.train import train
from tests.cli.conftest import QUICK, write_text

# In bf16, oneDNN keeps up to 1,024 compiled products, one a shape, so memory settles later.
OPTIONS = ("--max-length", "6", "--precision", "fp32")


@pytest.mark.timeout(900)
def test_memory_is_flat_over_twenty_thousand_lines(tmp_path):
    pairs = sample_pairs(2000, seed=3)
    write_text(tmp_path, pairs, "train")
    run = tmp_path / "run"
    files = {"source": tmp_path / "train.en", "target": tmp_path / "train.fr"}
    train("tiny", **files, out=run, settings=QUICK, quiet=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "heedful", "translate", str(run), *OPTIONS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    lines = [source for source, _ in pairs] * 10

    def feed():
        with process.stdin:
            for line in lines:
                process.stdin.write(line + "\n")

    threading.Thread(target=feed, daemon=True).start()
    found, memory = [], []
    for number, line in enumerate(process.stdout):
        found.append(line)
        if number % 4000 == 3999:
            memory.append(resident(process.pid))
    process.stdout.close()
    assert process.wait() == 0
    assert len(found) == len(lines)
    # The same line is translated the same wherever it stands, up to rounding in other batches.
    same = sum(found[i] == found[i + 2000] for i in range(18_000))
    assert same / 18_000 > 0.98
    assert memory[-1] < 1.15 * memory[1]


def resident(pid):
    """Bytes of memory that a process holds."""
    time.sleep(0.01)
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096
