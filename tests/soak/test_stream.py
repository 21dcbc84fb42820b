"""Translating a long text needs no more memory than a short one, and keeps its order."""

import os
import subprocess
import sys
import threading
import time

import pytest

from heedful.data.grammar import sample_pairs
from heedful.workflow.train import train
from tests.cli.conftest import QUICK, write_text

# In bf16, oneDNN keeps up to 1,024 compiled products, one a shape, which takes a hundred thousand
# lines to fill; with room for few, what is left to grow would be our own.
FEW = {**os.environ, "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "64"}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_memory_is_flat_over_eighty_thousand_lines(tmp_path, precision):
    pairs = sample_pairs(2000, seed=3)
    write_text(tmp_path, pairs, "train")
    run = tmp_path / "run"
    files = {"source": tmp_path / "train.en", "target": tmp_path / "train.fr"}
    train("tiny", **files, out=run, settings=QUICK, quiet=True)
    options = ("--max-length", "6", "--precision", precision)
    process = subprocess.Popen(
        [sys.executable, "-m", "heedful", "translate", str(run), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env=FEW,
    )
    lines = [source for source, _ in pairs] * 40

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
    same = sum(found[i] == found[i + 2000] for i in range(78_000))
    assert same / 78_000 > 0.98
    assert memory[-1] < 1.1 * memory[len(memory) // 2]


def resident(pid):
    """Bytes of memory that a process holds."""
    time.sleep(0.01)
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096
