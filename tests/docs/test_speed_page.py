"""The speed page is written from the results of any machine."""

import json
from pathlib import Path
from typing import Any

from benchmarks.speed.comparisons import compare, fastest
from benchmarks.speed.page import write_page


def _one(who: str, precision: str, seconds: float, **more: Any) -> dict[str, Any]:
    return {
        "who": who,
        "precision": precision,
        "seconds": {"median": seconds, "min": seconds, "max": seconds, "all": [seconds]},
        "counts": {"target tokens": 2000, "tokens": 4000},
        "per_second": {"target tokens": 2000 / seconds, "tokens": 4000 / seconds},
        "gflops": 400.0 / seconds,
        "share": 0.5 / seconds,
        "memory": int(1e9 * seconds),
        "versions": {who.split(maxsplit=1)[0]: "1.0"},
        **more,
    }


STEP = {
    "what": {"recipe": "paper-base", "pairs": 80},
    "machine": {"product_gflops": {"fp32": 200.0, "bf16": 800.0}},
    "measurements": [
        _one("heedful", "bf16", 1.0, profile={"products": 0.8, "others": 0.2}),
        _one("marian fp32", "fp32", 4.0),
        _one("marian autocast bf16", "bf16", 3.0),
        _one("torch_transformer fp32", "fp32", 2.0),
    ],
    "notes": ["ctranslate2 is not installed."],
}


def test_the_best_of_each_peer_is_compared():
    assert fastest(STEP["measurements"])["who"] == "torch_transformer fp32"
    speed, share = compare({"step": STEP})
    assert (speed["ours"], speed["theirs"]) == ("4,000 tokens/s", "1,333")
    assert (speed["who"], speed["ratio"]) == ("marian autocast bf16", 3.0)
    assert share["ratio"] == 0.5
    memory = {"compared": STEP, "alone": STEP}
    assert [row["ratio"] for row in compare({"memory": memory})] == [0.5, 1.0]


def test_a_page_has_every_section_that_was_measured(tmp_path: Path):
    folder = tmp_path / "speed"
    folder.mkdir()
    start = {"import torch": {"median": 1.0, "all": [1.0]}}
    start["first translation"] = {"median": 1.5, "all": [1.4, 1.5, 1.9]}
    curve = {"batch": {"100": STEP, "200": STEP}}
    for name, found in (("step", STEP), ("start", start), ("curves", curve)):
        record = {"measurements": found, "commands": ["heedful bench"], "machine": "a machine"}
        record |= {"commit": "abc", "date": "2026-11-21"}
        (folder / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
    page = write_page(folder).read_text(encoding="utf-8")
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    assert [heading[3:17] for heading in headings] == [
        "The training s",
        "From the start",
        "Batch size, se",
    ]
    assert "| start of `translate` to the first translation | 1.50 s | 1.00 s |" in page
    assert "Not measured: ctranslate2 is not installed." in page
    assert "Shares of heedful's time by function: products 80%, others 20%." in page
    assert "![trained tokens/s by tokens a side of a step](speed-batch.svg)" in page
    assert (tmp_path / "speed-batch.svg").read_text(encoding="utf-8").startswith("<?xml")
