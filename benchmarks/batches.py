"""
Measurements of batching: their content, their balance between ranks, the cost of mixing lengths.

    python -m benchmarks.batches layout               200,000 pairs of Europarl, no training
    python -m benchmarks.batches quickstart [--runs FOLDER]     the quickstart with three seeds
    python -m benchmarks.batches run RUN              the validations of a run
    python -m benchmarks.batches cost                 steps of mixed and of equal lengths, timed

Batches of one length, which the page compares, were those of commit ad5f5b8. Results go to
docs/results/batches.json and .md.
"""

import io
import itertools
import json
import lzma
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import ResultPage, arguments, data_folder, machine, measured
from benchmarks.training import read_log
from heedful.experiments.page import table
from heedful.experiments.record import Record

PAIRS = 200_000
RANKS = (1, 8, 16, 32)
SEEDS = (1, 2, 3)
STEPS = ("100", "200", "300")
VOCABULARY = 8000
TURNS = 22
KINDS = {"before": "one length", "after": "mixed"}
"""Kinds of batches, by their name in the record."""
RUNS = {
    "small": "300,000 pairs of Europarl English-French, recipe `small`",
    "multi30k": "Multi30k English-German, recipe `multi30k`",
}


def main() -> None:
    """Measure one of the four things and add it to the results."""
    parser = arguments(__doc__, "batches")
    parser.add_argument("what", choices=("layout", "quickstart", "run", "cost"))
    parser.add_argument("run", nargs="?", type=Path)
    options = parser.parse_args()
    what, result = options.what, {}
    if what == "layout":
        result["batches"] = [layout(tokens) for tokens in (4096, 25_000)]
    elif what == "quickstart":
        result["seeds"] = [quickstart(options.runs / f"seed-{seed}", seed) for seed in SEEDS]
    elif what == "cost":
        result["recipes"] = [cost(name) for name in ("tiny", "multi30k", "small")]
    else:
        result = curve(options.run)
        what = result["recipe"]
    part = {"commit": options.commit, "machine": machine(), **result}
    PAGE.keep("batches", measured("batches") | {f"after-{what}": part}, options.commit)


def europarl_lengths() -> tuple[np.ndarray, np.ndarray]:
    """Return the tokens of 200,000 pairs, the end symbol included, at most 256 a side."""
    import sentencepiece

    folder = data_folder() / "europarl-fr-en"

    def text(language: str) -> list[str]:
        files = sorted(folder.glob(f"train.*.{language}.xz"))
        texts = (lzma.decompress(file.read_bytes()).decode().split("\n")[:-1] for file in files)
        return list(itertools.islice(itertools.chain.from_iterable(texts), PAIRS))

    sides = text("en"), text("fr")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sides[0][:60_000] + sides[1][:60_000]),
        model_writer=model,
        vocab_size=32_000,
        model_type="unigram",
        minloglevel=2,
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    source, target = (np.array(list(map(len, processor.encode(side)))) + 1 for side in sides)
    short = (source <= 256) & (target <= 256)
    return source[short].astype(np.int32), target[short].astype(np.int32)


def layout(batch_tokens: int) -> dict[str, float]:
    """Measure the batches of an epoch: sizes, spread of lengths, and what ranks compute in vain."""
    from heedful.data.batching import BatchOrder

    source, target = europarl_lengths()
    row: dict[str, float] = {"batch_tokens": batch_tokens}
    for ranks in RANKS:
        # what a GPU computes at once where nothing else is chosen
        micro = -(-batch_tokens // ranks)
        order = BatchOrder(source, target, batch_tokens, micro, "real", 1)
        batches = order.epoch(0)
        useful = []
        for batch in batches[:40]:
            # places that all ranks have time for while the slowest computes
            places = [
                sum(len(part) * int(source[part].max() + target[part].max()) for part in parts)
                for parts in order.cut(batch, ranks)
            ]
            useful.append((source[batch].sum() + target[batch].sum()) / (ranks * max(places)))
        row[f"useful_{ranks}"] = float(np.mean(useful))
    # the batches themselves are the same for any number of ranks
    sizes = [max(source[b].sum(), target[b].sum()) / batch_tokens for b in batches]
    return row | {
        "mean_size": float(np.mean(sizes)),
        "smallest": float(np.min(sizes)),
        "largest": float(np.max(sizes)),
        "within_5_percent": float(np.mean(np.abs(np.array(sizes) - 1) <= 0.05)),
        "spread_in_batch": float(np.mean([target[batch].std() for batch in batches])),
        "spread_in_text": float(target.std()),
    }


def cost(recipe: str) -> dict[str, object]:
    """Time steps of mixed lengths and of one length in turns; return seconds a real token."""
    import torch

    from heedful.config.recipes import recipe as settings_of
    from heedful.data.batch import Collator
    from heedful.data.batching import BatchOrder
    from heedful.data.micro_batches import PADDING_COST_CPU
    from heedful.families.build import build_model
    from heedful.machine.benchmark import resolve_precision
    from heedful.model.cpu.attention import SHORT
    from heedful.model.initialise import initialise
    from heedful.training.loss import chunked_loss
    from heedful.training.optimizer import MixedPrecisionOptimizer

    config = settings_of(recipe)
    precision = resolve_precision("auto", torch.device("cpu"))
    model = build_model(config.model, VOCABULARY, VOCABULARY, max_length=config.data.max_length)
    initialise(model, 1)
    weights = MixedPrecisionOptimizer(model, precision)
    source, target = europarl_lengths()
    short = (source < config.data.max_length) & (target < config.data.max_length)
    source, target = source[short], target[short]
    tokens = config.train.batch_tokens
    # What `train` chooses on a processor.
    order = BatchOrder(
        *(source, target, tokens, 4608, "real", 1),
        padding_cost=PADDING_COST_CPU,
        left_out=SHORT,
    )
    mixed = order.epoch(0)[:TURNS]
    by_length = np.lexsort((source, target))
    pairs = tokens // int(target.mean())
    starts = np.linspace(0, len(by_length) - pairs, TURNS, dtype=int)
    equal = [by_length[start : start + pairs] for start in starts]
    collator = Collator(model.padding, model.start_token, model.end_token)
    ids = np.random.default_rng(1).integers(10, VOCABULARY, 300).tolist()

    def step(rows: np.ndarray) -> float:
        started = time.perf_counter()
        for part in order.cut(rows, 1)[0]:
            batch = collator.batch(
                [ids[: source[row] - 1] for row in part], [ids[: target[row] - 1] for row in part]
            )
            states = model(batch.source, batch.target_in)
            real = batch.target_out != model.padding
            chunked_loss(
                states[real],
                batch.target_out[real],
                model.output.weight,
                model.output.bias,
                0.1,
                "uniform",
            )[0].backward()
            weights.accumulate_gradients()
        weights.step(1e-4, 1.0 / tokens)
        return (time.perf_counter() - started) / int(source[rows].sum() + target[rows].sum())

    seconds = [(step(a), step(b)) for a, b in zip(mixed, equal, strict=True)][2:]
    means = np.mean(seconds, axis=0)  # over all lengths, so not the median
    return {
        "recipe": recipe,
        "precision": precision,
        "threads": torch.get_num_threads(),
        "mixed_microseconds_a_token": float(means[0] * 1e6),
        "equal_microseconds_a_token": float(means[1] * 1e6),
        "ratio": float(means[0] / means[1]),
    }


def quickstart(folder: Path, seed: int) -> dict[str, Any]:
    """Make the quickstart with a seed, unless it is there, and return what its log says."""
    from heedful.quickstart import quickstart as make

    bleu = folder / "bleu.json"
    if not bleu.exists():
        score = make(folder, say=print, settings=[f"train.seed={seed}"])
        bleu.write_text(json.dumps(score), encoding="utf-8")
    return {"seed": seed, "test_bleu": json.loads(bleu.read_text()), **curve(folder / "run")}


def curve(run: Path) -> dict[str, Any]:
    """Return the validations of a run, and its training perplexity at every fifty steps."""
    lines = read_log(run)
    training = [line for line in lines if "nll" in line]
    config = json.loads((run / "config.json").read_text())
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
    """Lay the figures out."""
    parts = record.measurements
    sections = [
        "A batch is what one update learns from. heedful draws batches from the text, mixed in "
        "length, and cuts them into micro-batches of similar lengths afterwards "
        "([why](../explain/readings.md)). They are compared with batches made of whole "
        "micro-batches of one sentence length each, with the same settings.",
        f"## The batches of 200,000 pairs of Europarl\n\n{_layout_table(parts)}",
        f"## Quickstart, three seeds\n\n{_quickstart_table(parts)}",
        *(
            f"## {title}\n\n{_run_table(parts, recipe)}"
            for recipe, title in RUNS.items()
            if f"before-{recipe}" in parts and f"after-{recipe}" in parts
        ),
    ]
    if "after-cost" in parts:
        sections.append(f"## What mixed lengths cost on a processor\n\n{_cost_table(parts)}")
    commits = ", ".join(sorted({str(part["commit"]) for part in parts.values()}))
    return "\n\n".join([*sections, f"Commits of the parts: {commits}."])


def _layout_table(parts: dict[str, Any]) -> str:
    """Write the content of batches."""
    rows = [
        parts[f"{kind}-layout"]["batches"][number] | {"kind": title}
        for number in range(2)
        for kind, title in KINDS.items()
    ]
    layouts = table(
        "tokens a batch |  | mean | smallest | largest | within 5 % | spread of lengths"
        + "".join(f" | useful, {ranks} ranks" for ranks in RANKS),
        "{batch_tokens:,} | {kind} | {mean_size:.3f} | {smallest:.3f} | {largest:.3f} "
        "| {within_5_percent:.0%} | {spread_in_batch:.1f}"
        + "".join(f" | {{useful_{ranks}:.2f}}" for ranks in RANKS),
        rows,
    )
    spread = parts["after-layout"]["batches"][0]["spread_in_text"]
    return (
        f"{layouts}\n\nSizes are shares of the setting, of the larger side. The spread "
        "is the standard deviation of target lengths within a batch; that of the text is "
        f"{spread:.1f}. Useful is the share of real tokens in what all ranks could compute, "
        "padding included, until the slowest is done."
    )


def _quickstart_table(parts: dict[str, Any]) -> str:
    """Write the curves of three seeds."""
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
        f"{runs}\n\nThe perplexity is that of the training text over the last "
        "steps; BLEU is greedy with single weights, the test BLEU with averaged weights and a beam "
        "of 4."
    )


def _run_table(parts: dict[str, Any], recipe: str) -> str:
    """Write the validations of a longer run, up to where the shorter of the two ends."""
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
    machines = "; ".join(dict.fromkeys(run["machine"] for run in runs))
    return f"{validations}\n\nOne seed. {described.capitalize()}. Trained on: {machines}."


def _cost_table(parts: dict[str, Any]) -> str:
    """Write how long a step takes for each token."""
    return (
        table(
            "recipe | precision | threads | mixed, µs a token | equal, µs a token | ratio",
            "{recipe} | {precision} | {threads} | {mixed_microseconds_a_token:.1f} "
            "| {equal_microseconds_a_token:.1f} | {ratio:.2f}",
            parts["after-cost"]["recipes"],
        )
        + "\n\nSteps in turns, forward, backward and update, on lengths of Europarl: batches mixed "
        "in length, and batches of one length each, spread over all lengths."
    )


PAGE = ResultPage("batches", "Batches", {"batches": body})


if __name__ == "__main__":
    main()
