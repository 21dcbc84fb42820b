"""
Recurrent models: their speed beside Joey NMT's, and Multi30k with attention and without.

    python -m benchmarks.recurrent speed
    python -m benchmarks.recurrent quality [--runs FOLDER]

`quality` trains `recurrent-small` twice, half an hour each on two quiet cores; a run that is there
is continued, a finished one only measured again. Writes `docs/results/recurrent-*.json`, and what
is written from them.
"""

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.figures import rewrite
from benchmarks.report import ROOT, commit, keep, read
from benchmarks.small import SET, lines_of, train_and_score
from benchmarks.speed.context import Context
from benchmarks.speed.whole import epoch

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
    *("--set", "data.subwords=bpe", "--set", "data.shared_vocabulary=true"),
    *("--set", "data.vocabulary_size=8000", "--set", "train.schedule=constant"),
)
WITHOUT = (
    *("--set", "model.recurrent.score=none", "--set", "model.recurrent.feed=none"),
    *("--set", "model.recurrent.readout=state"),
)
RUNS = {"attention": (), "without": WITHOUT}
# words of the source, end exclusive
BUCKETS = ((1, 9), (9, 12), (12, 15), (15, 19), (19, 1000))
GOAL = 33.0


def main() -> None:
    """Measure one part and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("speed", "quality"))
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "recurrent")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each toolkit")
    parser.add_argument("--commit", default="", help="the commit that trained RUNS")
    options = parser.parse_args()
    data = Path(os.environ.get("HEEDFUL_DATA", "../shared/data"))
    measured = options.commit or commit()
    if options.part == "speed":
        found = speed(data, options.rounds)
    else:
        found = quality(data / "multi30k" / "raw", options.runs)
    keep(f"recurrent-{options.part}", found, measured)
    rewrite()
    print(body())
    if options.part == "quality" and found["runs"]["attention"]["bleu"] < GOAL:
        raise SystemExit(f"the goal is {GOAL} lower-cased BLEU with attention")


# ---------------------------------------------------------------- speed


def speed(data: Path, rounds: int) -> dict[str, Any]:
    """Time steps, searches and an epoch of both toolkits."""
    with tempfile.TemporaryDirectory() as temporary:
        context = Context(data, Path(temporary), Path(temporary), rounds=rounds)
        whole = epoch(context, "envi", SUBWORDS, 2500, 1)
        who = ("--only", "heedful", "--only", "joey", "--rounds", rounds, "--precision", "fp32")
        steps = {
            name: context.bench("train", *shape, "--batch-tokens", 1600, "--steps", 3, *who)
            for name, shape in SHAPES.items()
        }
        search = ("--lines", 128, "--tokens", 24, "--batch", 32, "--beam", 5, "--repeats", 1)
        searches = {
            name: context.bench(
                *("translate", "--recipe", *shape, "--length-penalty", "none", *search, *who)
            )
            for name, shape in SHAPES.items()
        }
    return {"steps": steps, "searches": searches, "epoch": whole}


# ---------------------------------------------------------------- quality


def quality(raw: Path, runs: Path) -> dict[str, Any]:
    """Train both, translate, and score all lines and those of each length."""
    source = lines_of(raw / f"{SET}.en.gz")
    found: dict[str, Any] = {"sentences": [], "runs": {}}
    groups: list[list[int]] = []
    for first, end in BUCKETS:
        rows = [row for row, line in enumerate(source) if first <= len(line.split()) < end]
        groups.append(rows)
        found["sentences"].append({"first": first, "end": end, "count": len(rows)})
    for name, settings in RUNS.items():
        found["runs"][name] = train_and_score(raw, runs / name, "recurrent-small", settings, groups)
    return found


# ---------------------------------------------------------------- the page


def body() -> str:
    """Lay both parts out."""
    parts = []
    for name, layout in (("quality", _quality_page), ("speed", _speed_page)):
        record = read(f"recurrent-{name}")
        parts.append(
            f"{layout(record['found'])}\n\n```sh\npython -m benchmarks.recurrent {name}\n```\n\n"
            f"Machine: {record['machine']}. Commit {record['commit']}, {record['date']}."
        )
    return "\n\n".join(parts)


def _quality_page(found: dict[str, Any]) -> str:
    """Lay the scores out."""
    runs = found["runs"]
    rows = "\n".join(
        f"| {name} | {run['parameters']:,} | {run['steps']:,} | {run['target_tokens']:,} "
        f"| {run['bleu']:.1f} |"
        for name, run in (
            ("with attention", runs["attention"]),
            ("without", runs["without"]),
        )
    )
    lengths = "\n".join(
        f"| {_range(group)} | {group['count']} | {one:.1f} | {other:.1f} | {one - other:+.1f} |"
        for group, one, other in zip(
            found["sentences"],
            runs["attention"]["by_length"],
            runs["without"]["by_length"],
            strict=True,
        )
    )
    validations = "\n".join(
        f"| {one['step']:,} | {one['valid_perplexity']:.2f} | {one['bleu']:.1f} "
        f"| {other['valid_perplexity']:.2f} | {other['bleu']:.1f} |"
        for one, other in zip(
            runs["attention"]["validations"], runs["without"]["validations"], strict=True
        )
    )
    return (
        "## Multi30k English-German\n\n"
        "`recurrent-small`, an LSTM with attention, and the same without it: the first state of "
        "the decoder is then all that it knows of the source. Both see the same batches. "
        "Lower-cased "
        f"BLEU on {SET}, beam 4, average of the last checkpoints:\n\n"
        "| model | parameters | steps | target tokens | BLEU |\n"
        f"| --- | --- | --- | --- | --- |\n{rows}\n\n"
        "By words of the source, the reason why attention was invented:\n\n"
        "| words | sentences | with attention | without | difference |\n"
        f"| --- | --- | --- | --- | --- |\n{lengths}\n\n"
        "Validation while training (greedy, cased, a single checkpoint):\n\n"
        "| step | perplexity, with | BLEU, with | perplexity, without | BLEU, without |\n"
        f"| --- | --- | --- | --- | --- |\n{validations}\n\n{found.get('note', '')}".strip()
    )


def _range(group: dict[str, int]) -> str:
    """Write the lengths of a group."""
    first, last = group["first"], group["end"] - 1
    return f"{first} to {last}" if last < 100 else f"{first} and more"


def _speed_page(found: dict[str, Any]) -> str:
    """Lay the speeds out."""
    rows = []
    for name, report in found["steps"].items():
        rows.append(_row(f"training step, {name}", "target tokens", report))
    for name, report in found["searches"].items():
        rows.append(_row(f"beam 5, {name}", "sentences", report))
    ours, theirs = (
        max(
            turn[who]["target_tokens"] / turn[who]["own_seconds"]
            for turn in found["epoch"]["turns"]
        )
        for who in ("heedful", "joey")
    )
    rows.append(
        f"| an epoch of {found['epoch']['pairs']:,} pairs of Multi30k, en-vi shape "
        f"| target tokens | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.2f} | |"
    )
    table = "\n".join(rows)
    return (
        "## Speed beside Joey NMT\n\n"
        "The same shape, text and number format (fp32) in turns, 64 pairs of 25 + 25 tokens a "
        "step; searches of 128 lines give equal translations. In the epoch both read text, and "
        "lengths are mixed.\n\n"
        "| work | a second | heedful | Joey NMT | times | heedful's share of the product rate |\n"
        f"| --- | --- | --- | --- | --- | --- |\n{table}\n\n{found.get('note', '')}".strip()
    )


def _row(name: str, what: str, report: dict[str, Any]) -> str:
    """Write a row of two measurements."""
    ours, theirs = (one["per_second"][what] for one in report["measurements"])
    share = report["measurements"][0]["share"]
    return f"| {name} | {what} | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.2f} | {share:.0%} |"


if __name__ == "__main__":
    main()
