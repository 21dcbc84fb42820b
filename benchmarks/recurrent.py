"""
Recurrent models: their speed compared with Joey NMT, and Multi30k with and without attention.

    python -m benchmarks.recurrent speed
    python -m benchmarks.recurrent quality [--runs FOLDER]

`quality` trains `recurrent-small` twice, one hour each. An unfinished run is
continued; a finished run is only measured again. Writes `docs/results/recurrent-*.json` and builds
the page from them.
"""

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.families import measure_part
from benchmarks.report import ResultPage, data_folder
from benchmarks.speed.context import Context
from benchmarks.speed.whole import best_rates, epoch
from benchmarks.training import (
    SET,
    multi30k,
    read_lines,
    train_on_multi30k,
    validation_table,
)
from heedful.experiments.page import table, with_names
from heedful.experiments.record import Record

SHAPES = {
    "en-vi: width 512, additive": ("envi", "--vocabulary", 8000),
    "IWSLT14: width 256, general": (
        *("envi", "--vocabulary", 8000, "--set", "model.d_model=256"),
        *("--set", "model.recurrent.hidden_size=256", "--set", "model.recurrent.score=general"),
        *("--set", "model.recurrent.start=bridge"),
    ),
}
# both languages share one vocabulary of subwords, which both toolkits support
SUBWORDS = (
    *("data.subwords=bpe", "data.shared_vocabulary=true"),
    *("data.vocabulary_size=8000", "train.schedule=constant"),
)
WITHOUT = (
    *("model.recurrent.score=none", "model.recurrent.feed=none"),
    "model.recurrent.readout=state",
)
RUNS = {"attention": (), "without": WITHOUT}
# ranges of source lengths in words; the ends are exclusive
BUCKETS = ((1, 9), (9, 12), (12, 15), (15, 19), (19, 1000))


def main() -> None:
    """Measure one part, and write the page."""
    measure_part(__doc__, PAGE, measure_speed, measure_quality)


def measure_speed(rounds: int) -> dict[str, Any]:
    """Time steps, searches and an epoch of both toolkits."""
    who = ("--only", "heedful", "--only", "joey", "--rounds", rounds, "--precision", "fp32")
    search = ("--lines", 128, "--tokens", 24, "--batch", 32, "--beam", 5, "--repeats", 1)
    search += ("--length-penalty", "none")
    with tempfile.TemporaryDirectory() as folder:
        context = Context(data_folder(), Path(folder), Path(folder), rounds=rounds)
        return {
            "epoch": epoch(context, "envi", SUBWORDS, 2500, 1),
            "steps": {
                name: context.bench("train", *shape, "--batch-tokens", 1600, "--steps", 3, *who)
                for name, shape in SHAPES.items()
            },
            "searches": {
                name: context.bench("translate", "--recipe", *shape, *search, *who)
                for name, shape in SHAPES.items()
            },
        }


def measure_quality(runs: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Train both models, translate, and score all lines and the lines of each length range."""
    words = [len(line.split()) for line in read_lines(multi30k(SET, "en"))]
    groups = [
        [row for row, count in enumerate(words) if first <= count < end] for first, end in BUCKETS
    ]
    sentences = [
        {"first": first, "end": end, "count": len(rows)}
        for (first, end), rows in zip(BUCKETS, groups, strict=True)
    ]
    measured = {
        name: train_on_multi30k(runs / name, "recurrent-small", settings, groups)
        for name, settings in RUNS.items()
    }
    scores, lines = ({name: pair[n] for name, pair in measured.items()} for n in (0, 1))
    return {"sentences": sentences, "runs": scores}, lines


def quality(record: Record) -> str:
    """Format the scores as Markdown."""
    measured = record.measurements
    runs = {"with attention": measured["runs"]["attention"], "without": measured["runs"]["without"]}
    ours, theirs = runs.values()
    lengths = [
        {"words": _range(group), "count": group["count"], "ours": a, "theirs": b, "more": a - b}
        for group, a, b in zip(
            measured["sentences"], ours["by_length"], theirs["by_length"], strict=True
        )
    ]
    sizes = table(
        "model | parameters | steps | target tokens | BLEU",
        "{name} | {parameters:,} | {steps:,} | {target_tokens:,} | {bleu:.1f}",
        with_names(runs),
    )
    by_length = table(
        "words | sentences | with attention | without | difference",
        "{words} | {count} | {ours:.1f} | {theirs:.1f} | {more:+.1f}",
        lengths,
    )
    validations = validation_table(
        [
            line | {"without": rival}
            for line, rival in zip(ours["validations"], theirs["validations"], strict=True)
        ],
        "step | perplexity, with | BLEU, with | perplexity, without | BLEU, without",
        " | {without[valid_perplexity]:.2f} | {without[bleu]:.1f}",
    )
    return (
        "## Multi30k English-German\n\n"
        "`recurrent-small` is an LSTM with attention. It is compared with the same model without "
        "attention, whose decoder receives the source only as its initial state. Both models were "
        "trained once, on the same batches, in "
        f"{ours['minutes']:.0f} and {theirs['minutes']:.0f} minutes. BLEU is lower-cased, on "
        f"{SET}, with beam 4 and the average of the last checkpoints:\n\n"
        f"{sizes}\n\n"
        f"BLEU by number of source words:\n\n{by_length}\n\n{validations}"
    )


def _range(group: dict[str, int]) -> str:
    """Format the range of lengths of a group."""
    first, last = group["first"], group["end"] - 1
    return f"{first} to {last}" if last < 100 else f"{first} or more"


def speed(record: Record) -> str:
    """Format the speeds as Markdown."""
    measured = record.measurements
    epoch_rates = best_rates(measured["epoch"], "own_seconds").values()
    rows = [
        _row(f"{work}, {name}", unit, *(side["per_second"][unit] for side in sides), sides[0])
        for work, unit, reports in (
            ("training step", "target tokens", measured["steps"]),
            ("beam 5", "sentences", measured["searches"]),
        )
        for name, sides in ((name, report["measurements"]) for name, report in reports.items())
    ]
    epoch_of = f"an epoch of {measured['epoch']['pairs']:,} pairs of Multi30k, en-vi shape"
    rows.append(_row(epoch_of, "target tokens", *epoch_rates))
    speeds = table(
        "work | rate | heedful | Joey NMT | times | heedful's share of the product rate",
        "{work} | {unit}/s | {ours:,.0f} | {theirs:,.0f} | {times:.2f} | {share}",
        rows,
    )
    return (
        "## Speed compared with Joey NMT\n\nThe toolkits take turns, with the same shapes and "
        "text, in fp32. A step has 64 pairs of 25 + 25 tokens. A search translates 128 lines, "
        "and both toolkits write the same translations. The last row is an epoch of real text, "
        "with sentences of different lengths. A share is the rate of operations on real tokens, "
        f"divided by the rate of large matrix products (the product rate).\n\n{speeds}"
    )


def _row(
    work: str, unit: str, ours: float, theirs: float, measured: dict[str, Any] | None = None
) -> dict[str, Any]:
    share = f"{measured['share']:.0%}" if measured else ""
    rates = {"ours": ours, "theirs": theirs, "times": ours / theirs}
    return {"work": work, "unit": unit, "share": share, **rates}


PAGE = ResultPage(
    "recurrent",
    "Recurrent models",
    {"recurrent-quality": quality, "recurrent-speed": speed},
)


if __name__ == "__main__":
    main()
