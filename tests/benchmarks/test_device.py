"""The page of a GPU: what came back from a machine, and hours that follow from it."""

import json

import pytest
from benchmarks import device, report
from benchmarks.device import DETERMINISTIC, OPTIMIZATIONS_OFF, PAGE, keep_training, main

from heedful.experiments.record import Record

STEP = {
    "recipe": "paper-big",
    "levers": "all on",
    "counts": {"source tokens": 25_000, "target tokens": 25_000},
    "flops": 3.2e13,
    "seconds": [0.25, 0.1, 0.3],
    "memory": 20_000_000_000,
    "padded": "",
}
PART = {
    "part": "step-big",
    "size": "full",
    "precision": "bf16",
    "product_gflops": {"bf16": 800_000.0},
    "entries": [STEP, STEP | {"levers": "graphs off", "failed": "out of memory"}],
}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A folder of results that has a plan and no measurement."""
    folder = tmp_path / "results"
    (folder / "gpu").mkdir(parents=True)
    plan = (device.RESULTS / "gpu" / "plan.json").read_text(encoding="utf-8")
    (folder / "gpu" / "plan.json").write_text(plan, encoding="utf-8")
    for module in (device, report):
        monkeypatch.setattr(module, "RESULTS", folder)
    return folder


def row_of(name):
    (row,) = [line for line in PAGE.text().splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_what_was_not_measured_is_called_so(results):
    assert row_of("paper-big")[5:] == ["not measured"] * 3
    _, _, listed = PAGE.text().partition("## Not measured")
    assert "the step of `paper-big`: all on; all off; " in listed
    assert "all on, deterministic" in listed
    assert "compared with those of a CPU" in listed
    assert "searches compared with other toolkits, batches of 128 and 32 and 1" in listed


def test_what_was_measured_is_not_called_missing(results):
    entries = [STEP | {"levers": choice} for choice in (*OPTIMIZATIONS_OFF, DETERMINISTIC)]
    for part in ("correct", "rates", "step-base", "step-big", "step-small", "peers-train"):
        Record("c", "m", PART | {"entries": entries}).write(results / "gpu" / f"{part}.json")
    searches = [{"batch": batch} for batch in (128, 1)]
    for part in ("search", "peers-search"):
        Record("c", "m", PART | {"entries": searches}).write(results / "gpu" / f"{part}.json")
    listed = device.not_measured().splitlines()
    assert [line for line in listed if line.startswith("-")] == [
        "- searches with and without graphs, batches of 32",
        "- searches compared with other toolkits, batches of 32",
    ]


def test_hours_follow_from_the_rate_that_was_measured(results, tmp_path, monkeypatch):
    command = "heedful bench device --out OUT --part step-big"
    Record("", "P, 16 cores", PART, [command]).write(tmp_path / "device-step-big.json")
    monkeypatch.setattr("sys.argv", ["device", "keep", str(tmp_path), "--commit", "abc"])
    main()
    # 300,000 steps of a quarter of a second; an eighth of it on each of eight devices, and
    # 1.75 x 857 MB of gradients at 450 GB a second
    assert row_of("paper-big")[5:] == ["100,000", "20.8 hours", "2.88 hours"]
    assert row_of("all on") == ["all on", "100,000", "250.0", "16.0%", "20.0", "1.00"]
    assert row_of("graphs off")[1:] == ["not measured", "", "", "", "out of memory"]
    text = PAGE.text()
    assert (
        "This time is a lower bound, because several GPUs train with padding, while the measured "
        "rate is that of one GPU without padding." in text
    )
    assert (
        "reaches 16% of this device's rate for large bf16 matrix products; every optimization is "
        "on." in text
    )
    assert "Machine: P, 16 cores. Commit abc" in text
    assert f"{command}\n" in text


def test_a_training_is_kept_with_its_scores(results, tmp_path):
    line = {"step": 9, "seconds": 90.0, "memory": 8e9, "target_tokens": 1000, "perplexity": 4.0}
    validation = {"step": 9, "valid_loss": 2.0, "valid_perplexity": 7.39, "bleu": 31.0}
    lines = [line | {"target_tokens_per_second": 500_000.0, "waiting": 0.01}, validation]
    scores = {name: {"score": score} for name, score in (("bleu", 30.5), ("chrf", 55), ("ter", 50))}
    for name, text in (
        ("log.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines)),
        ("scores.json", json.dumps(scores)),
        ("samples.txt", "a\nb\nc\n\nd\ne\nf\n"),
        ("machine.txt", "a machine\n"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    keep_training(tmp_path, "abc")
    assert (
        "9 steps and 1.5 minutes. The training read 1,000 target tokens and used 8.0 GB of memory; "
        "its last logged rate was 500,000 target tokens a second. The device waited for batches "
        "for 1.0% of the time"
    ) in PAGE.text()
    assert "31.0 BLEU and perplexity 7.39" in PAGE.text()
    assert "not used in training, they have BLEU 30.5, chrF 55.0, TER 50.0." in PAGE.text()
    record = json.loads((results / "gpu" / "training.json").read_text(encoding="utf-8"))
    assert len(record["outputs"]["samples"]) == 2
    assert record["measurements"]["validations"] == lines[1:]
