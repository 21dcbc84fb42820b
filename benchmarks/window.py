"""
Comparison of windowed self-attention with full attention: CPU time and memory by length.

    python -m benchmarks.window

One attention layer with 4 heads and width 256 runs forward and backward on one sequence, in fp32 on
one thread. Each measurement has its own process. Linux only. Writes `docs/results/window.json` and
builds the page from it.
"""

import multiprocessing
import time
from pathlib import Path

from benchmarks.process import status_bytes
from benchmarks.report import ResultPage, arguments
from heedful.experiments.page import table
from heedful.experiments.record import Record

LENGTHS = (128, 256, 512, 1024, 2048, 4096, 8192)
WINDOWS = (64, 256)
WAYS = ("full", *(f"{way} {r}" for r in WINDOWS for way in ("mask", "blocks")))


def main() -> None:
    """Measure each kind of attention at each length."""
    options = arguments(__doc__).parse_args()
    rows = []
    for length in LENGTHS:
        rows.append({"length": length, **{way: measure_apart(way, length) for way in WAYS}})
        print(rows[-1], flush=True)
    PAGE.keep("window", {"rows": rows}, options.commit)


def measure_apart(way: str, length: int) -> dict[str, float]:
    """Measure in a separate process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        measurement: dict[str, float] = pool.apply(measure, (way, length))
        return measurement


def measure(way: str, length: int) -> dict[str, float]:
    """Return the CPU seconds and peak bytes of one forward and backward pass."""
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
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets the peak memory
    before = status_bytes("VmRSS")
    run()
    peak = status_bytes("VmHWM") - before
    times = max(1, 4096 // length)
    started = time.process_time()
    for _ in range(times):
        run()
    return {"seconds": (time.process_time() - started) / times, "bytes": peak}


def body(record: Record) -> str:
    """Format the page as Markdown."""
    names = ["full", *(f"{way}, r = {r}" for r in WINDOWS for way in ("mask", "blocks"))]
    rows = record.measurements["rows"]
    for row in rows:
        for way in WAYS:
            row[way] = {"ms": 1e3 * row[way]["seconds"], "MiB": row[way]["bytes"] / (1 << 20)}
    seconds, memory = (
        table(
            " | ".join(["positions", *names]),
            " | ".join(["{length:,}", *(f"{{{way}[{unit}]:,.1f}}" for way in WAYS)]),
            rows,
        )
        for unit in ("ms", "MiB")
    )
    return (
        "The tables show time and memory of an encoder's [self-attention in "
        "windows](../explain/attention.md#windows). Each position attends to itself and to r "
        "neighbors, half before it and half after it. One attention layer with 4 heads and width "
        "256 runs forward and backward on one sequence, in fp32 on one thread. “mask” is full "
        "attention with a banded mask; “blocks” computes only blocks that contain the band. A "
        "block has 128 keys for r = 64, and 512 keys for r = 256. heedful uses blocks for "
        "sequences longer than 256 positions and longer than twice the keys of a block. Shorter "
        f"sequences use the mask.\n\nProcessor time in milliseconds:\n\n{seconds}\n\nPeak memory "
        f"in MiB, without weights and input:\n\n{memory}"
    )


PAGE = ResultPage("window", "Self-attention in windows", {"window": body})


if __name__ == "__main__":
    main()
