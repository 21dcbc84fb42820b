"""
Results on a GPU: measurements of `heedful bench device`, and plans for the paper's models.

    python -m benchmarks.device plan                     count parameters and memory, on any machine
    python -m benchmarks.device keep FOLDER --commit X   keep the records of a session

`keep` reads `device-PART.json`, and the log and scores of `benchmarks.device_training`, from the
folders that the machine returned. It writes each record to `docs/results/gpu` and builds the page
from all records. Hours are computed from the newest measured rate; missing measurements are marked.
"""

import json
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.report import RESULTS, ResultPage, arguments, measurements_of
from benchmarks.training import note
from heedful.bench.device import ALL_ON, DETERMINISTIC, OPTIMIZATIONS_OFF, SIZES
from heedful.bench.device_report import (
    NOT_MEASURED,
    entry_seconds,
    graphs_gain,
    join_rounds,
    part_rows,
    verdict,
)
from heedful.experiments.page import markdown, table
from heedful.experiments.record import Record

RECIPES = {"paper-base": "step-base", "paper-big": "step-big"}
"""The recipes of the plan, and the parts that measure their steps."""
PAIRS = 4_500_000
TOKENS_OF_A_SENTENCE = 30
"""Tokens assumed for a target sentence of WMT14, to count epochs; hours do not depend on it."""
SEVERAL, BANDWIDTH = 8, 450.0
"""Number of devices in the plan, and the GB per second that each sends over NVLink (H100)."""
VOCABULARY = 37_000
FACTS = (
    *("seconds", "memory", "target_tokens", "target_tokens_per_second", "perplexity"),
    "waiting",
)


def main() -> None:
    """Write records, and build the page from them."""
    parser = arguments(__doc__)
    parser.add_argument("what", choices=("plan", "keep"))
    parser.add_argument("folders", nargs="*", type=Path)
    options = parser.parse_args()
    if options.what == "plan":
        PAGE.keep("gpu/plan", plan(), options.commit)
        return
    for folder in options.folders:
        for path in sorted(folder.glob("device-*.json")):
            record = replace(Record.read(path), commit=options.commit)
            record.write(RESULTS / "gpu" / f"{record.measurements['part']}.json")
        if (folder / "scores.json").exists():
            keep_training(folder, options.commit)
    PAGE.write()


def plan() -> dict[str, Any]:
    """Count parameters and memory of the paper's models without computing anything."""
    import torch

    from heedful.config.load import load_config
    from heedful.experiments.work import build
    from heedful.training.device.plan import PlannedTraining

    trainings = {}
    for recipe in RECIPES:
        config = load_config(recipe)
        with torch.device("meta"):
            model = build(config, VOCABULARY)
        trainings[recipe] = asdict(PlannedTraining.of(model, config.train))
    return trainings


def keep_training(folder: Path, commit: str) -> None:
    """Record a training run on the machine: the last lines of its log and its scores."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text("utf-8").splitlines()]
    last = [line for line in lines if "target_tokens_per_second" in line][-1]
    validations = [line for line in lines if "valid_loss" in line or "valid_perplexity" in line]
    samples = (folder / "samples.txt").read_text("utf-8").split("\n\n")
    measurements = {
        "step": last["step"],
        **{name: last[name] for name in FACTS if name in last},
        "validations": validations,
        "scores": json.loads((folder / "scores.json").read_text("utf-8")),
    }
    machine = (folder / "machine.txt").read_text("utf-8").strip()
    command = "python -m benchmarks.device_training train build/device-text"
    record = Record(commit, machine, measurements, [command], outputs={"samples": samples})
    record.write(RESULTS / "gpu" / "training.json")


def plan_body(record: Record) -> str:
    """Lay out the plan: measured rates and computed hours."""
    from heedful.training.device.plan import Devices, PlannedTraining

    rows = []
    for recipe, counted in record.measurements.items():
        training = PlannedTraining(**counted)
        measurement = measured_rate(recipe)
        epochs = training.steps * training.target_tokens / (PAIRS * TOKENS_OF_A_SENTENCE)
        row = {
            "recipe": recipe,
            "parameters": training.parameters / 1e6,
            "steps": training.steps,
            "epochs": epochs,
            "memory": f"{(training.state + (training.states() or 0)) / 1e9:.1f} GB",
            "rate": NOT_MEASURED,
            "one": NOT_MEASURED,
            "several": NOT_MEASURED,
        }
        if measurement is not None:
            rate, link = measurement
            row["rate"] = f"{rate:,.0f}{link}"
            row["one"] = f"{training.hours(Devices(rate)):.1f} hours"
            row["several"] = f"{training.hours(Devices(rate, SEVERAL, BANDWIDTH)):.2f} hours"
        rows.append(row)
    laid_out = table(
        "recipe | million weights | steps | epochs (computed) | memory, 1 GPU (computed) "
        f"| target tokens/s, 1 GPU (measured) | 1 GPU (computed) | {SEVERAL} GPUs (computed)",
        "{recipe} | {parameters:.0f} | {steps:,} | {epochs:.0f} | {memory} | {rate} | {one} "
        "| {several}",
        rows,
    )
    return (
        f"## WMT14 English-German, {PAIRS / 1e6:.1f} million pairs\n\n{laid_out}\n\n"
        "Memory includes weights, gradients, Adam's moments, and all states that the forward pass "
        "of a batch keeps. Hours are the number of steps times 25,000 target tokens, divided by "
        "the measured rate. "
        f"For {SEVERAL} GPUs, gradients are assumed to be summed at {BANDWIDTH:g} GB a second "
        "after each backward pass. This time is a lower bound, because several GPUs train with "
        "padding, while the measured rate is that of one GPU without padding. "
        f"Epochs are computed for target sentences of {TOKENS_OF_A_SENTENCE} tokens."
    )


def measured_rate(recipe: str) -> tuple[float, str] | None:
    """Return the newest target tokens per second on one GPU, and a link if the rate is older."""
    for entry in measurements_of(f"gpu/{RECIPES[recipe]}").get("entries", ()):
        if entry["levers"] == ALL_ON and "seconds" in entry:
            return entry["counts"]["target tokens"] / entry_seconds(entry), ""
    earlier = measurements_of("speed/gpu").get(f"{recipe} step")
    if earlier is None:
        return None
    rate = earlier["measurements"][0]["per_second"]["target tokens"]
    return rate, " ([earlier](speed.md#on-a-gpu))"


def rows_body(title: str, key: str, record: Record) -> str:
    """Lay out the measurements of a part, which differ in `key`."""
    return f"## {title}\n\n{_rows(record, key)}" + note(record)


def step_body(record: Record) -> str:
    """Lay out a step with its optimizations on and off."""
    part = record.measurements
    recipe = part["entries"][0]["recipe"]
    counts = part["entries"][0]["counts"]
    head = (
        f"## The step of {recipe}: {counts['source tokens']:,} + {counts['target tokens']:,} tokens"
    )
    return "\n\n".join((head, _rows(record, "levers"), verdict([part]))) + note(record)


def search_body(record: Record) -> str:
    """Lay out searches with and without graphs."""
    gains = ", ".join(
        f"{gain:.1f} times as fast at batch {batch}"
        for batch, gain in graphs_gain(record.measurements).items()
    )
    ending = f"\n\nWith graphs, a search is {gains}." if gains else ""
    return f"## A search\n\n{_rows(record, 'kernels')}{ending}"


def _rows(record: Record, key: str = "") -> str:
    """Lay out the measurements of a part, which differ in `key`; rounds of peers are joined."""
    part = record.measurements
    entries = join_rounds(part["entries"]) if key == "who" else part["entries"]
    return markdown(part_rows(part, entries, key))


def training_body(record: Record) -> str:
    """Format the figures of a real training as Markdown."""
    last = record.measurements
    scores = ", ".join(
        f"{label} {last['scores'][name]['score']:.1f}"
        for name, label in (("bleu", "BLEU"), ("chrf", "chrF"), ("ter", "TER"))
    )
    return (
        "## A real training\n\n"
        f"A model with the shape of `paper-base` was trained on half a million pairs of Europarl "
        f"French-English, for {last['step']:,} steps and {last['seconds'] / 60:.1f} minutes. "
        f"The training read {last['target_tokens']:,} target tokens and used "
        f"{last['memory'] / 1e9:.1f} GB of memory; its last logged rate was "
        f"{last['target_tokens_per_second']:,.0f} target tokens a second. The device waited for "
        f"batches for {last['waiting']:.1%} of the time. "
        f"On 2,000 validation lines, the last checkpoint has "
        f"{last['validations'][-1]['bleu']:.1f} BLEU and perplexity "
        f"{last['validations'][-1]['valid_perplexity']:.2f}. On 2,000 test lines that were "
        f"not used in training, {last.get('scored', 'they have')} {scores}."
    )


def not_measured() -> str:
    """List what `heedful bench device` measures and no record has; empty if nothing is missing."""
    size, missing = SIZES["full"], []
    if not _entries("correct"):
        missing.append("losses, gradients and searches compared with those of a CPU, in bf16 too")
    if not _entries("rates"):
        missing.append("rates of copies and of starting kernels")
    for name, shape in size.steps.items():
        measured = {entry["levers"] for entry in _entries(f"step-{name}")}
        choices = [
            choice for choice in (*OPTIMIZATIONS_OFF, DETERMINISTIC) if choice not in measured
        ]
        if choices:
            missing.append(f"the step of `{shape.recipe}`: {'; '.join(choices)}")
    for part, title in (
        ("search", "searches with and without graphs"),
        ("peers-search", "searches compared with other toolkits"),
    ):
        measured = {entry["batch"] for entry in _entries(part)}
        batches = [str(batch) for batch in size.searches if batch not in measured]
        if batches:
            missing.append(f"{title}, batches of {' and '.join(batches)}")
    if not _entries("peers-train"):
        missing.append("the step of `paper-base` compared with other toolkits")
    if not missing:
        return ""
    lines = "\n".join(f"- {line}" for line in missing)
    return (
        "## Not measured\n\n`heedful bench device` measures the following, too, but it has not "
        f"been measured with today's kernels:\n\n{lines}"
    )


def _entries(part: str) -> list[dict[str, Any]]:
    """Return the measurements of a part; empty if there is no record."""
    return list(measurements_of(f"gpu/{part}").get("entries", ()))


PAGE = ResultPage(
    "gpu",
    "On a GPU",
    {
        "gpu/plan": plan_body,
        "gpu/correct": partial(rows_body, "Compared with the processor", ""),
        "gpu/rates": partial(rows_body, "Limits of the device", ""),
        **{f"gpu/step-{name}": step_body for name in ("base", "big", "small")},
        "gpu/search": search_body,
        "gpu/peers-train": partial(rows_body, "The step compared with other toolkits", "who"),
        "gpu/peers-search": partial(rows_body, "The search compared with other toolkits", "who"),
        "gpu/training": training_body,
    },
    "[`heedful bench device`](../howto/benchmark.md) measures steps and searches on your GPU. "
    "“Share of products” is the rate of operations on real tokens, divided by the rate of large "
    "matrix products on the same device. A training step has four optimizations: layers are "
    "compiled, steps are replayed from CUDA graphs, the next batch is prepared in advance, and "
    "batches have no padding.",
    not_measured,
)


if __name__ == "__main__":
    main()
