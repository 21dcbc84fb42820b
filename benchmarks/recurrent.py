"""
Recurrent models: their speed beside Joey NMT's, and Multi30k with attention and without.

    python -m benchmarks.recurrent speed
    python -m benchmarks.recurrent quality [--runs FOLDER]

`quality` trains `recurrent-small` twice, half an hour each on two quiet cores; a run that is there
is continued, a finished one only measured again. Writes `docs/results/recurrent-*.json`, and the
page from them.
"""

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.report import ResultPage, arguments, data_folder
from benchmarks.speed.context import Context
from benchmarks.speed.whole import best_rates, epoch
from benchmarks.training import (
    SET,
    multi30k,
    note,
    read_lines,
    train_on_multi30k,
    validation_table,
)
from heedful.experiments.page import table
from heedful.experiments.record import Record

SHAPES = {
    "en-vi: width 512, additive": ("envi", "--vocabulary", 8000),
    "IWSLT14: width 256, general": (
        *("envi", "--vocabulary", 8000, "--set", "model.d_model=256"),
        *("--set", "model.recurrent.hidden_size=256", "--set", "model.recurrent.score=general"),
        *("--set", "model.recurrent.start=bridge"),
    ),
}
# words of both languages become subwords of one vocabulary, which both toolkits have
SUBWORDS = (
    *("data.subwords=bpe", "data.shared_vocabulary=true"),
    *("data.vocabulary_size=8000", "train.schedule=constant"),
)
WITHOUT = (
    *("model.recurrent.score=none", "model.recurrent.feed=none"),
    "model.recurrent.readout=state",
)
RUNS = {"attention": (), "without": WITHOUT}
# words of the source, end exclusive
BUCKETS = ((1, 9), (9, 12), (12, 15), (15, 19), (19, 1000))


def main() -> None:
    """Measure one part and write the page."""
    parser = arguments(__doc__, "recurrent")
    parser.add_argument("part", choices=("speed", "quality"))
    parser.add_argument("--rounds", type=int, default=3, help="turns of each toolkit")
    options = parser.parse_args()
    if options.part == "speed":
        PAGE.keep("recurrent-speed", measure_speed(options.rounds), options.commit)
    else:
        measurements, outputs = measure_quality(options.runs)
        PAGE.keep("recurrent-quality", measurements, options.commit, outputs=outputs)


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
    """Train both, translate, and score all lines and those of each length."""
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
    """Lay the scores out."""
    measured = record.measurements
    runs = {"with attention": measured["runs"]["attention"], "without": measured["runs"]["without"]}
    rows = [
        (name, *(f"{run[key]:,}" for key in ("parameters", "steps", "target_tokens")), bleu)
        for name, run in runs.items()
        for bleu in (f"{run['bleu']:.1f}",)
    ]
    lengths = [
        (_range(group), group["count"], f"{ours:.1f}", f"{theirs:.1f}", f"{ours - theirs:+.1f}")
        for group, ours, theirs in zip(
            measured["sentences"], *(run["by_length"] for run in runs.values()), strict=True
        )
    ]
    curves = zip(
        (", with", ", without"), (run["validations"] for run in runs.values()), strict=True
    )
    return (
        "## Multi30k English-German\n\n"
        "`recurrent-small`, an LSTM with attention, and the same without it: the first state of "
        "the decoder is then all that it knows of the source. Both see the same batches. "
        f"Lower-cased BLEU on {SET}, beam 4, average of the last checkpoints:\n\n"
        f"{table('model | parameters | steps | target tokens | BLEU', rows)}\n\n"
        "By words of the source, the reason why attention was invented:\n\n"
        f"{table('words | sentences | with attention | without | difference', lengths)}\n\n"
        f"{validation_table(*curves)}{note(record)}"
    )


def _range(group: dict[str, int]) -> str:
    """Write the lengths of a group."""
    first, last = group["first"], group["end"] - 1
    return f"{first} to {last}" if last < 100 else f"{first} and more"


def speed(record: Record) -> str:
    """Lay the speeds out."""
    measured = record.measurements
    rows = [
        _row(f"{work}, {name}", unit, report["measurements"])
        for work, unit, reports in (
            ("training step", "target tokens", measured["steps"]),
            ("beam 5", "sentences", measured["searches"]),
        )
        for name, report in reports.items()
    ]
    ours, theirs = best_rates(measured["epoch"], "own_seconds").values()
    epoch_of = f"an epoch of {measured['epoch']['pairs']:,} pairs of Multi30k, en-vi shape"
    rates = (f"{ours:,.0f}", f"{theirs:,.0f}", f"{ours / theirs:.2f}", "")
    heads = "work | a second | heedful | Joey NMT | times | heedful's share of the product rate"
    return (
        "## Speed beside Joey NMT\n\n"
        "The same shape, text and number format (fp32) in turns, 64 pairs of 25 + 25 tokens a "
        "step; searches of 128 lines give equal translations. In the epoch both read text, and "
        f"lengths are mixed.\n\n{table(heads, [*rows, (epoch_of, 'target tokens', *rates)])}"
        f"{note(record)}"
    )


def _row(name: str, unit: str, measurements: list[dict[str, Any]]) -> tuple[str, ...]:
    """Write a row of two measurements."""
    ours, theirs = (system["per_second"][unit] for system in measurements)
    share = f"{measurements[0]['share']:.0%}"
    return name, unit, f"{ours:,.0f}", f"{theirs:,.0f}", f"{ours / theirs:.2f}", share


PAGE = ResultPage(
    "recurrent",
    "Recurrent models",
    {"recurrent-quality": quality, "recurrent-speed": speed},
)


if __name__ == "__main__":
    main()
