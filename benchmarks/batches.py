"""
Measurements of batching: their content, their balance between ranks, the gain of mixing lengths.

    python -m benchmarks.batches layout NAME              200,000 pairs of Europarl, no training
    python -m benchmarks.batches quickstart NAME FOLDER   the quickstart with three seeds
    python -m benchmarks.batches run NAME RUN             the validations of a run, to compare
    python -m benchmarks.batches cost after               steps of mixed and of equal lengths, timed

NAME is `before` or `after`. For the first, run this file with PYTHONPATH at the sources of commit
ad5f5b8, whose steps were made of whole micro-batches. Results go to docs/results/batches.json and
.md.
"""

import argparse
import io
import itertools
import json
import lzma
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import rewrite
from benchmarks.report import RESULTS, commit, keep, machine, read

PAIRS = 200_000
RANKS = (1, 8, 16, 32)
SEEDS = (1, 2, 3)
VOCABULARY = 8000
TURNS = 22
RUNS = {
    "small": "300,000 pairs of Europarl English-French, recipe `small`",
    "multi30k": "Multi30k English-German, recipe `multi30k`",
}


def main() -> None:
    """Measure one of the four things and add it to the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Plain)
    parser.add_argument("what", choices=("layout", "quickstart", "run", "cost"))
    parser.add_argument("name", choices=("before", "after"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--commit", default="", help="the commit that trained, if it is another")
    options = parser.parse_args()
    if options.what == "layout":
        result: dict[str, Any] = {"batches": layout()}
    elif options.what == "quickstart":
        result = {"seeds": [quickstart(options.folder / f"seed-{seed}", seed) for seed in SEEDS]}
    elif options.what == "cost":
        result = {"recipes": [cost(name) for name in ("tiny", "multi30k", "small")]}
    else:
        result = curve(options.folder)
        options.what = str(result["recipe"])
    measured = options.commit or commit()
    found = read("batches")["found"] if (RESULTS / "batches.json").exists() else {}
    found[f"{options.name}-{options.what}"] = {
        "commit": measured,
        "machine": machine(),
        **result,
    }
    keep("batches", found, measured)
    rewrite()


class _Plain(argparse.RawDescriptionHelpFormatter):
    """Keep the lines of the description."""


def europarl_lengths() -> tuple[np.ndarray, np.ndarray]:
    """Return the tokens of 200,000 pairs, the end symbol included, at most 256 a side."""
    import sentencepiece

    folder = Path(os.environ.get("HEEDFUL_DATA", "../shared/data")) / "europarl-fr-en"

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
    kept = (source <= 256) & (target <= 256)
    return source[kept].astype(np.int32), target[kept].astype(np.int32)


def layout() -> list[dict[str, float]]:
    """Measure the batches of an epoch: sizes, spread of lengths, and what ranks compute in vain."""
    from heedful.data.batching import BatchOrder

    source, target = europarl_lengths()
    rows = []
    for batch_tokens in (4096, 25_000):
        row: dict[str, float] = {"batch_tokens": batch_tokens}
        for ranks in RANKS:
            # what a GPU computed at once where nothing else was asked for
            micro = -(-batch_tokens // ranks)
            order = BatchOrder(source, target, batch_tokens, micro, "real", 1)
            batches = order.epoch(0)
            useful = [share(order, batch, ranks, source, target) for batch in batches[:40]]
            row[f"useful_{ranks}"] = float(np.mean(useful))
            if ranks == 1:
                pairs = [np.concatenate(b) if isinstance(b, list) else b for b in batches]
                sizes = [max(source[p].sum(), target[p].sum()) / batch_tokens for p in pairs]
                row["mean_size"] = float(np.mean(sizes))
                row["smallest"], row["largest"] = float(np.min(sizes)), float(np.max(sizes))
                row["within_5_percent"] = float(np.mean(np.abs(np.array(sizes) - 1) <= 0.05))
                row["spread_in_batch"] = float(np.mean([target[p].std() for p in pairs]))
        row["spread_in_text"] = float(target.std())
        rows.append(row)
    return rows


def share(order, batch, ranks: int, source: np.ndarray, target: np.ndarray) -> float:
    """Return real tokens by the places that all ranks have time for while the slowest computes."""
    if hasattr(order, "cut"):
        shares = order.cut(batch, ranks)
    else:
        shares = [batch[rank::ranks] for rank in range(ranks)]
        batch = np.concatenate(batch)
    places = [
        sum(len(part) * int(source[part].max() + target[part].max()) for part in parts)
        for parts in shares
    ]
    return float((source[batch].sum() + target[batch].sum()) / (ranks * max(places)))


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
    kept = (source < config.data.max_length) & (target < config.data.max_length)
    source, target = source[kept], target[kept]
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


def quickstart(folder: Path, seed: int) -> dict[str, object]:
    """Make the quickstart with a seed, unless it is there, and return what its log says."""
    from heedful.quickstart import quickstart as make

    bleu = folder / "bleu.json"
    if not bleu.exists():
        score = make(folder, say=print, settings=[f"train.seed={seed}"])
        bleu.write_text(json.dumps(score), encoding="utf-8")
    return {"seed": seed, "test_bleu": json.loads(bleu.read_text()), **curve(folder / "run")}


def curve(run: Path) -> dict[str, object]:
    """Return the validations of a run, and its training perplexity at every fifty steps."""
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
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


def body(found: dict[str, Any]) -> str:
    """Lay the figures out."""
    parts = [
        "A batch is what one update learns from. Up to commit ad5f5b8 (“before”) it was made of "
        "whole micro-batches of one sentence length each; now (“after”) it is drawn from the "
        "text, mixed in length, and cut into micro-batches of similar lengths afterwards "
        "([why](../explain/readings.md)).",
        "## The batches of 200,000 pairs of Europarl\n\n" + _layout_table(found),
        "## Quickstart, three seeds\n\n" + _quickstart_table(found),
    ]
    for recipe, title in RUNS.items():
        if f"before-{recipe}" in found and f"after-{recipe}" in found:
            parts.append(f"## {title}\n\n" + _run_table(found, recipe))
    parts.append(
        "These runs cost 2.3 hours on a machine that had other work. Not run: `small` beyond its "
        "warm-up of 2,000 steps, `multi30k` after step 2,000, further seeds. The settings of "
        "`tiny`, `small` and `multi30k` are unchanged: with the same settings all are better than "
        "before, and no other values were tried, except 700 steps for `tiny`, which gave 98.8 BLEU."
    )
    if "after-cost" in found:
        parts.append("## What mixed lengths cost on a processor\n\n" + _cost_table(found))
    commands = (
        "```sh\ngit worktree add OLD ad5f5b8\n"
        "PYTHONPATH=OLD/src python -m benchmarks.batches layout before\n"
        "PYTHONPATH=OLD/src python -m benchmarks.batches quickstart before FOLDER\n"
        "python -m benchmarks.batches layout after\n"
        "python -m benchmarks.batches quickstart after FOLDER2\n"
        "PYTHONPATH=OLD/src heedful train small … --set train.steps=800 --out RUN\n"
        "python -m benchmarks.batches run before RUN --commit ad5f5b8\n"
        "heedful train small … --set train.steps=800 --out RUN2\n"
        "python -m benchmarks.batches run after RUN2\n"
        "python -m benchmarks.batches cost after\n"
        "```"
    )
    commits = ", ".join(sorted({str(part["commit"]) for part in found.values()}))
    return "\n\n".join([*parts, commands, f"Commits of the parts: {commits}."])


def _layout_table(found: dict[str, Any]) -> str:
    """Write the content of batches."""
    head = ["tokens a batch", "", "mean", "smallest", "largest", "within 5 %", "spread of lengths"]
    rows = [[*head, *(f"useful, {ranks} ranks" for ranks in RANKS)]]
    for number in range(2):
        for name in ("before", "after"):
            row = found[f"{name}-layout"]["batches"][number]
            sizes = [f"{row[key]:.3f}" for key in ("mean_size", "smallest", "largest")]
            rows.append(
                [
                    f"{row['batch_tokens']:,}",
                    name,
                    *sizes,
                    f"{row['within_5_percent']:.0%}",
                    f"{row['spread_in_batch']:.1f}",
                    *(f"{row[f'useful_{ranks}']:.2f}" for ranks in RANKS),
                ]
            )
    spread = found["after-layout"]["batches"][0]["spread_in_text"]
    return (
        _table(rows) + "\n\nSizes are shares of the setting, of the larger side. The spread is the "
        f"standard deviation of target lengths within a batch; that of the text is {spread:.1f}. "
        "Useful is the share of real tokens in what all ranks could compute, padding included, "
        "until the slowest is done."
    )


def _quickstart_table(found: dict[str, Any]) -> str:
    """Write the curves of three seeds."""
    rows = [["", "seed", "perplexity, step 100", "200", "300", "validation BLEU, step 300"]]
    rows[0] += ["600", "900", "1,200", "test BLEU", "target tokens"]
    for name in ("before", "after"):
        for run in found[f"{name}-quickstart"]["seeds"]:
            training = [run["training"].get(str(step)) for step in (100, 200, 300)]
            rows.append(
                [
                    name,
                    str(run["seed"]),
                    *("" if value is None else f"{value:.2f}" for value in training),
                    *(f"{line['bleu']:.1f}" for line in run["validation"]),
                    f"{run['test_bleu']:.1f}",
                    f"{run['target_tokens']:,}",
                ]
            )
    return _table(rows) + (
        "\n\nThe perplexity is that of the training text over the last steps; BLEU is greedy with "
        "single weights, the test BLEU with averaged weights and a beam of 4."
    )


def _run_table(found: dict[str, Any], recipe: str) -> str:
    """Write the validations of a longer run, up to where the shorter of the two ends."""
    before, after = found[f"before-{recipe}"], found[f"after-{recipe}"]
    of_step = {line["step"]: line for line in after["validation"]}
    rows = [["step", "perplexity before", "after", "BLEU before", "after"]]
    for line in before["validation"]:
        if other := of_step.get(line["step"]):
            rows.append(
                [
                    f"{line['step']:,}",
                    *(f"{run['perplexity']:.2f}" for run in (line, other)),
                    *(f"{run['bleu']:.1f}" for run in (line, other)),
                ]
            )
    each = [run["target_tokens"] / run["steps"] for run in (before, after)]
    return _table(rows) + (
        f"\n\nOne seed; {each[0]:,.0f} target tokens a step before, {each[1]:,.0f} after; "
        f"{before['steps']:,} and {after['steps']:,} steps were made, in {before['precision']} and "
        f"{after['precision']}; the longer one went on. {_machines(before, after)}"
    )


def _machines(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Say on which machines two runs were made."""
    if before["machine"] == after["machine"]:
        return f"Machine of both: {before['machine']}."
    return f"Machines: {before['machine']}; {after['machine']}."


def _cost_table(found: dict[str, Any]) -> str:
    """Write how long a step takes for each token."""
    rows = [["recipe", "precision", "threads", "mixed, µs a token", "equal, µs a token", "ratio"]]
    for row in found["after-cost"]["recipes"]:
        rows.append(
            [
                *(row["recipe"], row["precision"], str(row["threads"])),
                *(f"{row[f'{kind}_microseconds_a_token']:.1f}" for kind in ("mixed", "equal")),
                f"{row['ratio']:.2f}",
            ]
        )
    return _table(rows) + (
        "\n\nSteps in turns, forward, backward and update, on lengths of Europarl: batches mixed "
        "in length, and batches of one length each, spread over all lengths."
    )


def _table(rows: list[list[str]]) -> str:
    """Write a table in Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])


if __name__ == "__main__":
    main()
