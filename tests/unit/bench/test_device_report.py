"""The tables of `heedful bench device` and its last sentence."""

import pytest

from heedful.bench.device import ALL_ON, PLAIN
from heedful.bench.device_report import graphs_gain, join_rounds, share_of_products, verdict

STEP = {
    "recipe": "paper-base",
    "levers": ALL_ON,
    "seconds": [0.1, 0.02, 0.04],
    "flops": 8e12,
    "counts": {"target tokens": 25_000},
    "memory": 9_000_000_000,
}
RECORD = {
    "part": "step-base",
    "device": "cuda:0",
    "precision": "bf16",
    "product_gflops": {"bf16": 800_000.0, "fp32": 50_000.0},
    "seconds": 1.0,
    "entries": [STEP],
}
SHARE = "A step of paper-base uses 25% of this device's rate of large bf16 products; "


def test_the_share_is_that_of_the_median_and_of_the_same_precision():
    assert share_of_products(STEP, RECORD) == pytest.approx(0.25)
    assert share_of_products(STEP | {"precision": "fp32"}, RECORD) == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("more", "ending"),
    [
        ({}, "every lever is on."),
        ({"padded": ""}, "every lever is on."),
        (
            {"padded": "the objective is risk"},
            "unpadded batches, compiled layers, graphs and batches ahead are off, because the "
            "objective is risk.",
        ),
        (
            {"messages": ["torch's compiler failed, so layers are not compiled: no Triton"]},
            "a lever is off: torch's compiler failed, so layers are not compiled: no Triton.",
        ),
    ],
)
def test_the_last_sentence_says_which_lever_is_off_and_why(more, ending):
    record = RECORD | {"entries": [{"failed": "no", "levers": ALL_ON}, STEP | more]}
    assert verdict([record]) == SHARE + ending


def test_without_a_step_no_share_is_claimed():
    assert (
        verdict([])
        == "No step was measured, so the share of this device that is used is not known."
    )
    assert verdict([RECORD | {"entries": [STEP | {"levers": "all off"}]}]).startswith("No step")


def test_rounds_are_joined_by_system_and_batch():
    entries = [
        {"who": "a", "batch": 1, "seconds": [1.0]},
        {"who": "b", "batch": 1, "failed": "no"},
        {"who": "a", "batch": 2, "seconds": [5.0]},
        {"who": "a", "batch": 1, "seconds": [3.0, 2.0]},
    ]
    joined = join_rounds(entries)
    assert [entry["seconds"] for entry in joined] == [[1.0, 3.0, 2.0], [], [5.0]]
    assert [entry.get("failed") for entry in joined] == [None, "no", None]


def test_the_gain_of_graphs_is_by_batch():
    ways = {"with graphs": 1.0, PLAIN: 6.0}
    entries = [
        {"batch": 32, "kernels": name, "seconds": [seconds]} for name, seconds in ways.items()
    ]
    entries += [{"batch": 1, "kernels": PLAIN, "seconds": [1.0]}, {"failed": "no"}]
    assert graphs_gain({"entries": entries}) == {32: 6.0}
