"""
Measurements of batching: content of batches, balance between ranks, cost of mixed lengths.

    python -m benchmarks.batches layout               200,000 pairs of Europarl, no training
    python -m benchmarks.batches quickstart [--runs FOLDER]     the quickstart with three seeds
    python -m benchmarks.batches run RUN              the validations of a run
    python -m benchmarks.batches cost                 steps of mixed and of equal lengths

The page also shows the earlier batches of one length, which commit ad5f5b8 made. Results are
written to docs/results/batches.json and .md.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import ResultPage, arguments, data_folder, heedful, machine, measurements_of
from benchmarks.speed.context import Context
from benchmarks.speed.whole import europarl
from benchmarks.training import chosen, last_line, read_log, text_files
from heedful.data.batching import BatchOrder
from heedful.experiments.page import table
from heedful.experiments.record import Record
from heedful.preparation.prepared_text import PreparedText

PAIRS = 200_000
RANKS = (1, 8, 16, 32)
SEEDS = (1, 2, 3)
STEPS = ("100", "200", "300")
STEPS_OF_COST = 22
KINDS = {"before": "one length", "after": "mixed"}
"""Kinds of batches by their name in the record."""
RUNS = {
    "small": "300,000 pairs of Europarl English-French, recipe `small`",
    "multi30k": "Multi30k English-German, recipe `multi30k`",
}


def main() -> None:
    """Measure one part, and add it to the results."""
    parser = arguments(__doc__, "batches")
    parser.add_argument("what", choices=("layout", "quickstart", "run", "cost"))
    parser.add_argument("run", nargs="?", type=Path)
    options = parser.parse_args()
    what, result, runs = options.what, {}, options.runs
    runs.mkdir(parents=True, exist_ok=True)
    if what == "layout":
        lengths = europarl_lengths(runs)
        result["batches"] = [layout(*lengths, tokens) for tokens in (4096, 25_000)]
    elif what == "quickstart":
        result["seeds"] = [quickstart(runs / f"seed-{seed}", seed) for seed in SEEDS]
    elif what == "cost":
        result["recipes"] = [cost(name, runs) for name in ("tiny", "multi30k", "small")]
    else:
        result = curve(options.run)
        what = result["recipe"]
    part = {"commit": options.commit, "machine": machine(), **result}
    PAGE.keep("batches", measurements_of("batches") | {f"after-{what}": part}, options.commit)


def prepare(recipe: str, folder: Path, settings: Sequence[str]) -> Path:
    """Encode the first pairs of Europarl for a recipe."""
    context = Context(data_folder(), folder, folder)
    files = text_files([europarl(context, language, PAIRS) for language in ("en", "fr")])
    out = folder / f"{recipe}-data"
    heedful("data", "prepare", recipe, *files, "--out", out, *chosen(settings))
    return out


def europarl_lengths(folder: Path) -> list[np.ndarray]:
    """Return the lengths of each side of pairs of at most 256 tokens, end symbols included."""
    settings = ("data.vocabulary_size=32000", "data.max_length=256")
    (pairs,) = PreparedText.open(prepare("paper-base", folder, settings)).open_pairs()
    return [pairs.source_lengths + 1, pairs.target_lengths + 1]


def layout(source: np.ndarray, target: np.ndarray, batch_tokens: int) -> dict[str, float]:
    """Measure the batches of an epoch: sizes, spread of lengths, and idle time of ranks."""
    row: dict[str, float] = {"batch_tokens": batch_tokens}
    for ranks in RANKS:
        # the default size of a micro-batch on a GPU
        micro = -(-batch_tokens // ranks)
        order = BatchOrder(source, target, batch_tokens, micro, "real", 1)
        batches = order.epoch(0)
        useful = []
        for batch in batches[:40]:
            # number of tokens, padding included, that each rank computes
            places = [
                sum(len(part) * int(source[part].max() + target[part].max()) for part in parts)
                for parts in order.cut(batch, ranks)
            ]
            useful.append((source[batch].sum() + target[batch].sum()) / (ranks * max(places)))
        row[f"useful_{ranks}"] = float(np.mean(useful))
    # the batches do not depend on the number of ranks
    sizes = [max(source[b].sum(), target[b].sum()) / batch_tokens for b in batches]
    return row | {
        "mean_size": float(np.mean(sizes)),
        "smallest": float(np.min(sizes)),
        "largest": float(np.max(sizes)),
        "within_5_percent": float(np.mean(np.abs(np.array(sizes) - 1) <= 0.05)),
        "spread_in_batch": float(np.mean([target[batch].std() for batch in batches])),
        "spread_in_text": float(target.std()),
    }


def cost(recipe: str, folder: Path) -> dict[str, Any]:
    """Train with batches of mixed and of equal lengths; return the seconds per real token."""
    data = prepare(recipe, folder, ("data.vocabulary_size=8000",))
    result: dict[str, Any] = {"recipe": recipe}
    steps = (f"train.steps={STEPS_OF_COST}", "train.checkpoint_minutes=none")
    for kind, counting in (("mixed", "real"), ("equal", "padded")):
        run = folder / f"{recipe}-{kind}"
        settings = chosen((*steps, f"train.batch_counting={counting}"))
        heedful("train", recipe, "--data", data, "--out", run, *settings)
        log, choices = last_line(run), read_config(run)["choices"]
        tokens = log["source_tokens"] + log["target_tokens"]
        result[f"{kind}_microseconds_a_token"] = 1e6 * log["seconds"] / tokens
        result |= {name: choices[name] for name in ("precision", "threads")}
    ratio = result["mixed_microseconds_a_token"] / result["equal_microseconds_a_token"]
    return result | {"ratio": ratio}


def read_config(run: Path) -> dict[str, Any]:
    """Read the settings and machine settings of a run."""
    config: dict[str, Any] = json.loads((run / "config.json").read_text("utf-8"))
    return config


def quickstart(folder: Path, seed: int) -> dict[str, Any]:
    """Run the quickstart with a seed, unless it was run before, and return figures from its log."""
    from heedful.quickstart import quickstart as make

    bleu = folder / "bleu.json"
    if not bleu.exists():
        score = make(folder, say=print, settings=[f"train.seed={seed}"])
        bleu.write_text(json.dumps(score), encoding="utf-8")
    return {"seed": seed, "test_bleu": json.loads(bleu.read_text()), **curve(folder / "run")}


def curve(run: Path) -> dict[str, Any]:
    """Return the validations of a run, and its training perplexity every fifty steps."""
    lines = read_log(run)
    training = [line for line in lines if "nll" in line]
    config = read_config(run)
    return {
        "recipe": config["settings"]["recipe"],
        "target_tokens": training[-1]["target_tokens"],
        "steps": training[-1]["step"],
        "precision": config["choices"]["precision"],
        "training": {
            str(line["step"]): line["perplexity"] for line in training if line["step"] % 50 == 0
        },
        "validation": [
            {"step": line["step"], "perplexity": line["valid_perplexity"], "bleu": line["bleu"]}
            for line in lines
            if "valid_perplexity" in line
        ],
    }


def body(record: Record) -> str:
    """Format the measurements as Markdown."""
    parts = record.measurements
    sections = [
        "This page compares two ways to choose the sentence pairs of a batch, from which one "
        "update is computed. heedful draws the pairs at random, so their lengths are “mixed”. If "
        "padding is computed, heedful splits the batch into micro-batches of similar lengths "
        "([why](../explain/readings.md)). A batch of “one length” consists of whole "
        "micro-batches, all of about the same sentence length.",
        f"## The batches of 200,000 pairs of Europarl\n\n{_layout_table(parts)}",
        f"## Quickstart, three seeds\n\n{_quickstart_table(parts)}",
        *(
            f"## {title}\n\n{_run_table(parts, recipe)}"
            for recipe, title in RUNS.items()
            if f"before-{recipe}" in parts and f"after-{recipe}" in parts
        ),
    ]
    if "after-cost" in parts:
        sections.append(f"## Cost of mixed lengths on a processor\n\n{_cost_table(parts)}")
    commits = ", ".join(sorted({str(part["commit"]) for part in parts.values()}))
    return "\n\n".join([*sections, f"Commits of the parts: {commits}."])


def _layout_table(parts: dict[str, Any]) -> str:
    """Lay out the content of batches."""
    rows = [
        parts[f"{kind}-layout"]["batches"][number] | {"kind": title}
        for number in range(2)
        for kind, title in KINDS.items()
    ]
    layouts = table(
        "tokens a batch |  | mean size | smallest | largest | within 5% | spread of lengths"
        + "".join(f" | useful, {ranks} rank{'s' * (ranks > 1)}" for ranks in RANKS),
        "{batch_tokens:,} | {kind} | {mean_size:.3f} | {smallest:.3f} | {largest:.3f} "
        "| {within_5_percent:.0%} | {spread_in_batch:.1f}"
        + "".join(f" | {{useful_{ranks}:.2f}}" for ranks in RANKS),
        rows,
    )
    spread = parts["after-layout"]["batches"][0]["spread_in_text"]
    return (
        f"{layouts}\n\nA size is the number of tokens on the larger side of a batch, divided by "
        "`train.batch_tokens`. The spread is the standard deviation of target lengths within a "
        f"batch; for the whole text it is {spread:.1f}. “Useful” is the ratio of a batch's real "
        "tokens to the tokens, padding included, that all ranks could compute in the slowest "
        "rank's time."
    )


def _quickstart_table(parts: dict[str, Any]) -> str:
    """Lay out the curves of three seeds."""
    rows = [
        run
        | {"kind": title, "bleu": [line["bleu"] for line in run["validation"]]}
        | {f"at {n}": f"{p:.2f}" if (p := run["training"].get(n)) else "" for n in STEPS}
        for kind, title in KINDS.items()
        for run in parts[f"{kind}-quickstart"]["seeds"]
    ]
    runs = table(
        " | seed | perplexity, step 100 | 200 | 300 | validation BLEU, step 300 "
        "| 600 | 900 | 1,200 | test BLEU | target tokens",
        "{kind} | {seed} | {at 100} | {at 200} | {at 300} | {bleu[0]:.1f} | {bleu[1]:.1f} "
        "| {bleu[2]:.1f} | {bleu[3]:.1f} | {test_bleu:.1f} | {target_tokens:,}",
        rows,
    )
    return (
        f"{runs}\n\nPerplexity is measured on the training text, over the last steps before the "
        "named step. Validation BLEU uses greedy search and a single checkpoint. Test BLEU uses "
        "beam 4 and the average of the last checkpoints."
    )


def _run_table(parts: dict[str, Any], recipe: str) -> str:
    """Lay out the validations of two longer runs, up to the end of the shorter run."""
    runs = [parts[f"{kind}-{recipe}"] for kind in KINDS]
    first, second = ({line["step"]: line for line in run["validation"]} for run in runs)
    rows = [{"first": first[step], "second": second[step]} for step in first if step in second]
    validations = table(
        "step | perplexity, {0} | perplexity, {1} | BLEU, {0} | BLEU, {1}".format(*KINDS.values()),
        "{first[step]:,} | {first[perplexity]:.2f} | {second[perplexity]:.2f} "
        "| {first[bleu]:.1f} | {second[bleu]:.1f}",
        rows,
    )
    described = "; ".join(
        f"{title}: {run['target_tokens'] / run['steps']:,.0f} target tokens a step, "
        f"{run['steps']:,} steps in {run['precision']}"
        for title, run in zip(KINDS.values(), runs, strict=True)
    )
    machines = dict(zip(KINDS.values(), (run["machine"] for run in runs), strict=True))
    if len({*machines.values()}) == 1:
        trained = f"Machine of both training runs: {runs[0]['machine']}."
    else:
        trained = " ".join(f"Machine of “{kind}”: {name}." for kind, name in machines.items())
    return f"{validations}\n\nOne seed. {described.capitalize()}. {trained}"


def _cost_table(parts: dict[str, Any]) -> str:
    """Lay out the time of a step per token."""
    return (
        table(
            "recipe | precision | threads | mixed, µs a token | equal, µs a token | ratio",
            "{recipe} | {precision} | {threads} | {mixed_microseconds_a_token:.1f} "
            "| {equal_microseconds_a_token:.1f} | {ratio:.2f}",
            parts["after-cost"]["recipes"],
        )
        + "\n\nEach recipe is trained on Europarl, once with batches of mixed lengths, and "
        "once with batches of sentences of about equal length."
    )


PAGE = ResultPage("batches", "Batches", {"batches": body})


if __name__ == "__main__":
    main()
