"""The tables of `heedful bench device` and its last sentence."""

import pytest

from heedful.bench.device import ALL_ON, PLAIN
from heedful.bench.device_report import (
    graphs_gain,
    join_rounds,
    part_rows,
    share_of_products,
    verdict,
)

STEP = {
    "recipe": "paper-base",
    "levers": ALL_ON,
    "seconds": [0.1, 0.02, 0.04],
    "flops": 8e12,
    "counts": {"target tokens": 25_000},
    "memory": 9_000_000_000,
}
PART = {
    "part": "step-base",
    "device": "cuda:0",
    "precision": "bf16",
    "product_gflops": {"bf16": 800_000.0, "fp32": 50_000.0},
    "seconds": 1.0,
    "entries": [STEP],
}
SHARE = (
    "A training step of `paper-base` reaches 25% of this device's rate for large bf16 matrix "
    "products; "
)


def test_the_share_is_that_of_the_median_and_of_the_same_precision():
    assert share_of_products(STEP, PART) == pytest.approx(0.25)
    assert share_of_products(STEP | {"precision": "fp32"}, PART) == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("more", "ending"),
    [
        ({}, "every optimization is on."),
        ({"padded": ""}, "every optimization is on."),
        (
            {"padded": "the objective is risk"},
            "unpadded batches, compiled layers, CUDA graphs and prefetched batches are off, "
            "because the objective is risk.",
        ),
        (
            {"messages": ["torch's compiler failed, so layers are not compiled: no Triton"]},
            "an optimization is off: torch's compiler failed, so layers are not compiled: no "
            "Triton.",
        ),
    ],
)
def test_the_last_sentence_says_which_optimization_is_off_and_why(more, ending):
    part = PART | {"entries": [{"failed": "no", "levers": ALL_ON}, STEP | more]}
    assert verdict([part]) == SHARE + ending


def test_without_a_step_no_share_is_claimed():
    assert verdict([]).startswith("No step with all optimizations on was measured, so the ")
    assert verdict([PART | {"entries": [STEP | {"levers": "all off"}]}]).startswith("No step")


def test_rounds_are_joined_by_system_and_batch():
    entries = [
        {"who": "a", "batch": 1, "seconds": [1.0], "memory": 5},
        {"who": "b", "batch": 1, "failed": "no"},
        {"who": "a", "batch": 2, "seconds": [5.0], "memory": None},
        {"who": "a", "batch": 1, "seconds": [3.0, 2.0], "memory": 7},
        {"who": "c", "batch": 1, "failed": "busy"},
        {"who": "a", "batch": 1, "failed": "no time is left"},
        {"who": "a", "batch": 2, "seconds": [4.0], "memory": None},
        {"who": "c", "batch": 1, "seconds": [6.0], "memory": 1},
    ]
    joined = join_rounds(entries)
    assert [entry["seconds"] for entry in joined] == [[1.0, 3.0, 2.0], [], [5.0, 4.0], [6.0]]
    assert [entry.get("failed") for entry in joined] == [None, "no", None, None]
    assert [entry.get("memory") for entry in joined] == [7, None, None, 1]


def test_the_gain_of_graphs_is_by_batch():
    ways = {"with graphs": 1.0, PLAIN: 6.0}
    entries = [
        {"batch": 32, "kernels": name, "seconds": [seconds]} for name, seconds in ways.items()
    ]
    entries += [{"batch": 1, "kernels": PLAIN, "seconds": [1.0]}, {"failed": "no"}]
    assert graphs_gain({"entries": entries}) == {32: 6.0}


def test_rows_say_what_was_measured_and_what_was_not():
    failed = {"levers": "all off", "failed": "out of memory"}
    assert part_rows(PART, [STEP, failed], "levers")[1:] == [
        (ALL_ON, "625,000", "40.0", "25.0%", "9.0", "1.00"),
        ("all off", "not measured", "", "", "", "out of memory"),
    ]
    assert part_rows(PART, [STEP | {"batch": 8}])[1][0] == "paper-base, all on, batch 8"
    limits = {
        "product_gflops": {"bf16": 800_000.0},
        "copy_gb_per_second": 4_000.0,
        "launch_seconds": {"by Python": 5e-6},
    }
    rates = {"part": "rates"}
    assert part_rows(rates, [limits])[1:] == [
        ("products in bf16", "800,000 GFLOP/s"),
        ("copies, read and written", "4,000.0 GB/s"),
        ("start of a kernel by Python", "5.0 microseconds"),
    ]
    assert part_rows(rates, [{"what": "rates", "failed": "no"}])[1] == ("rates", "not measured: no")
    step = {"what": "step", "equal": True, "distances": {"loss": 1e-6}}
    assert part_rows({"part": "correct"}, [step, step | {"equal": False}])[1:] == [
        ("step", "within", "loss 1.0e-06"),
        ("step", "OUTSIDE", "loss 1.0e-06"),
    ]
