"""
Multi30k English-German from raw text to BLEU: the recipe `multi30k`, an hour on two cores.

    python -m benchmarks.multi30k [--runs FOLDER] [--commit C]

An interrupted run is continued; a finished run is only measured again. Writes
`docs/results/multi30k.json` and builds the page from it.
"""

import json
from pathlib import Path
from typing import Any

from benchmarks.report import ResultPage, arguments, heedful
from benchmarks.training import (
    last_line,
    multi30k,
    multi30k_files,
    train,
    translate,
    validation_table,
    validations,
)
from heedful.experiments.page import code_block, table
from heedful.experiments.record import Record

MINUTES = 58
SETS = ("test_2016_flickr", "val")
CASES = {"cased": (), "lower-cased": ("--lowercase",)}


def main() -> None:
    """Train, average, translate with beam search and greedy search, score, and write the page."""
    options = arguments(__doc__, "multi30k").parse_args()
    run = options.runs / "multi30k"
    train(run, "multi30k", multi30k_files(), [f"train.minutes={MINUTES}"])
    ways = [
        (name, weights, beam) for name in SETS for weights in ("average", "last") for beam in (4, 1)
    ]
    reports = [score(run, *way) for way in ways]
    last = last_line(run)
    measurements = {
        "steps": last["step"],
        "minutes": last["seconds"] / 60,
        "target_tokens": last["target_tokens"],
        "tokens_per_second": last["target_tokens"] / last["seconds"],
        "padding": last["padding"],
        "memory_gib": last["memory"] / (1 << 30),
        "scores": [
            {"set": name, "weights": weights, "beam": beam}
            | {"lower-cased": report["lower-cased"]["bleu"]["score"]}
            | {kind: report["cased"][kind]["score"] for kind in ("bleu", "chrf", "ter")}
            for (name, weights, beam), report in zip(ways, reports, strict=True)
        ],
        "signatures": [reports[0][case]["bleu"]["signature"] for case in ("lower-cased", "cased")],
        "validations": validations(run),
    }
    outputs = {str(way): _output(run, *way).read_text("utf-8").splitlines() for way in ways}
    PAGE.keep("multi30k", measurements, options.commit, outputs=outputs)


def score(run: Path, name: str, weights: str, beam: int) -> dict[str, dict[str, Any]]:
    """Translate a test set, and score it with and without case."""
    output = _output(run, name, weights, beam)
    translate(run, output, "--weights", weights, "--beam", beam, part=name)
    files = ("--hypothesis", output, "--reference", multi30k(name, "de"), "--json")
    return {case: json.loads(heedful("evaluate", *files, *more)) for case, more in CASES.items()}


def _output(run: Path, name: str, weights: str, beam: int) -> Path:
    return run / f"{name}.{weights}.beam{beam}.de"


def body(record: Record) -> str:
    """Format the measurements as Markdown."""
    measured = record.measurements
    scores = table(
        "set | weights | beam | lower-cased BLEU | cased BLEU | chrF | TER",
        "{set} | {weights} | {beam} | {lower-cased:.2f} | {bleu:.2f} | {chrf:.2f} | {ter:.2f}",
        measured["scores"],
    )
    return (
        f"The recipe `multi30k` takes {measured['steps']:,} steps in {measured['minutes']:.1f} "
        f"minutes, validations included. It reads {measured['target_tokens']:,} target tokens, "
        f"{measured['tokens_per_second']:,.0f} a second. Padding is {measured['padding']:.1%} of "
        f"all tokens, and peak memory is {measured['memory_gib']:.2f} GiB.\n\n{scores}\n\n"
        f"Signatures: {', '.join(f'`{text}`' for text in measured['signatures'])}.\n\n"
        f"{validation_table(measured['validations'])}\n\n"
        + code_block(
            (
                "heedful train multi30k --source train.en.gz --target train.de.gz \\",
                "    --valid-source val.en.gz --valid-target val.de.gz --out RUN "
                f"--set train.minutes={MINUTES}",
                "heedful average RUN",
                "heedful translate RUN --input test_2016_flickr.en.gz --output out.de",
                "heedful evaluate --hypothesis out.de --reference test_2016_flickr.de.gz "
                "--lowercase",
            )
        )
        + "\n\nThe whole benchmark:"
    )


PAGE = ResultPage("multi30k", "Multi30k English-German", {"multi30k": body})


if __name__ == "__main__":
    main()
