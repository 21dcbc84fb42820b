"""
Self-attention to neighbours beside full attention: processor time and memory by length.

    python -m benchmarks.window

One attention of 4 heads and width 256, forwards and backwards, one sequence, fp32, one thread; each
measurement in a process of its own. Linux only. Writes `docs/results/window.json`, and the page
from it.
"""

import multiprocessing
import time
from pathlib import Path

from benchmarks.report import ResultPage, arguments
from heedful.experiments.page import table
from heedful.experiments.record import Record

LENGTHS = (128, 256, 512, 1024, 2048, 4096, 8192)
WINDOWS = (64, 256)
WAYS = ("full", *(f"{way} {r}" for r in WINDOWS for way in ("mask", "blocks")))


def main() -> None:
    """Measure every way at every length."""
    options = arguments(__doc__).parse_args()
    rows = []
    for length in LENGTHS:
        rows.append({"length": length, **{way: measure_apart(way, length) for way in WAYS}})
        print(rows[-1], flush=True)
    PAGE.keep("window", {"rows": rows}, options.commit)


def measure_apart(way: str, length: int) -> dict[str, float]:
    """Measure in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        measurement: dict[str, float] = pool.apply(measure, (way, length))
        return measurement


def measure(way: str, length: int) -> dict[str, float]:
    """Return processor seconds of one pass, and the bytes that it needed at most."""
    import torch

    from heedful.model.attention import MultiHeadAttention
    from heedful.model.layout import Layout
    from heedful.model.window import Window, restrict

    torch.set_num_threads(1)
    torch.manual_seed(1)
    attention, x = MultiHeadAttention(256, 4), torch.randn(1, length, 256)
    kind, _, r = way.partition(" ")
    layout = Layout()
    if kind == "mask":
        mask, _ = restrict(None, Window.around(int(r)), length, dense=True)
        layout = Layout(mask)
    elif kind == "blocks":
        layout = Layout(window=Window.around(int(r)))

    def run() -> None:
        attention(x, x, layout)[0].square().sum().backward()

    run()
    before = _reset_peak()
    run()
    peak = _status("VmHWM") - before
    times = max(1, 4096 // length)
    started = time.process_time()
    for _ in range(times):
        run()
    return {"seconds": (time.process_time() - started) / times, "bytes": peak}


def body(record: Record) -> str:
    """Lay the page out."""
    heads = [
        "positions",
        "full",
        *(f"{way}, r = {r}" for r in WINDOWS for way in ("mask", "blocks")),
    ]
    seconds, memory = (
        table(
            " | ".join(heads),
            [
                (f"{row['length']:,}", *(f"{row[way][unit] * factor:,.1f}" for way in WAYS))
                for row in record.measurements["rows"]
            ],
        )
        for unit, factor in (("seconds", 1e3), ("bytes", 1 / (1 << 20)))
    )
    return (
        "Self-attention that sees r neighbours, as an encoder's does, half before and half after "
        "([what it is](../explain/attention.md#windows)): one attention of 4 heads and width 256, "
        "forwards and backwards, one sequence, fp32, one thread. “mask” is full attention with a "
        "band in its mask, “blocks” computes the band alone. The layers take the mask for short "
        "sequences, and blocks for those of more than 256 positions that are more than twice the "
        "keys of a block (128 for r = 64, 512 for r = 256).\n\n"
        f"Processor time in milliseconds:\n\n{seconds}\n\n"
        f"Memory beyond weights and input, at most, in MiB:\n\n{memory}"
    )


def _reset_peak() -> int:
    """Forget the peak of memory; return the bytes in use."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmRSS")


def _status(name: str) -> int:
    """Read bytes from the process's own status."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


PAGE = ResultPage("window", "Self-attention to neighbours", {"window": body})


if __name__ == "__main__":
    main()
