"""
Dates, kana, phonemes and questions: the commands of each page, up to the score.

    python -m benchmarks.sequences [NAME ...] [--runs DIR]

All tasks together take an hour on two cores and need the extra `phonemes`. Runs that already exist
in DIR are not trained again. Writes `docs/results/sequences.json` and builds the page from it;
tasks that are not named keep their figures.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.report import ResultPage, arguments, heedful, measurements_of, outputs_of
from benchmarks.training import last_line, text_files, train
from heedful.evaluation.bleu import text_metrics
from heedful.evaluation.significance import Resampling, confidence_intervals
from heedful.evaluation.sufficient_statistics import measure as measure_lines
from heedful.experiments.page import table, with_names
from heedful.experiments.record import Record
from heedful.text.corpus import read_lines


class SequenceTask(NamedTuple):
    """A task from a page in docs/howto."""

    data: str
    """The name of the task's data in `heedful data get`."""
    sides: tuple[str, str]
    """File suffixes of the source and target files."""
    page: str


TASKS = {
    "dates": SequenceTask("dates", ("words", "iso"), "dates"),
    "kana": SequenceTask("kana", ("kana", "romaji"), "transliteration"),
    "phonemes": SequenceTask("cmudict", ("word", "phonemes"), "phonemes"),
    "questions": SequenceTask("questions", ("question", "answer"), "questions"),
}
"""Tasks by the name of their recipe."""
_SCORES, _TRIALS = ("exact_match", "cer"), 1000


def main() -> None:
    """Train and score the tasks, and write the page."""
    parser = arguments(__doc__, "sequences")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TASKS))
    options = parser.parse_args()
    if unknown := sorted({*options.names} - {*TASKS}):
        parser.error(f"NAME must be one of {', '.join(TASKS)}, but is {unknown[0]}")
    scores, outputs = measurements_of("sequences"), outputs_of("sequences")
    for name in options.names or TASKS:
        measured, outputs[name] = measure(name, TASKS[name], options.runs)
        scores[name] = {"commit": options.commit, **measured}
        ordered = {name: scores[name] for name in TASKS if name in scores}
        PAGE.keep("sequences", ordered, options.commit, outputs=outputs)


def measure(recipe: str, task: SequenceTask, runs: Path) -> tuple[dict[str, Any], list[str]]:
    """Run the commands on a task's page; return measurements and outputs."""
    text, run = runs / "text" / task.data, runs / recipe
    if not text.exists():
        text.parent.mkdir(parents=True, exist_ok=True)
        heedful("data", "get", task.data, "--out", text)
    files, valid, test = (
        [text / f"{part}.{side}" for side in task.sides] for part in ("train", "valid", "test")
    )
    train(run, recipe, text_files(files, valid))
    output = run / f"output.{task.sides[1]}"
    heedful("translate", run, "--input", test[0], "--output", output)
    lines, last = list(read_lines(output)), last_line(run)
    measured = {
        "pairs": _lines(files[0]),
        "tested": _lines(test[0]),
        "steps": last["step"],
        "minutes": last["seconds"] / 60,
        "scores": score_lines(lines, list(read_lines(test[1]))),
    }
    return measured, lines


def score_lines(lines: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """Score outputs as `heedful evaluate --confidence` does."""
    metrics = text_metrics([references])
    counted = [measure_lines(metrics[name], lines) for name in _SCORES]
    intervals = confidence_intervals(counted, Resampling(_TRIALS))
    return {
        name: {"score": counts.score, "signature": counts.signature, "interval": interval}
        for name, counts, interval in zip(_SCORES, counted, intervals, strict=True)
    }


def _lines(file: Path) -> int:
    """Count the lines of a file."""
    return file.read_bytes().count(b"\n")


def score(scores: dict[str, Any], kind: str) -> str:
    """Format a score with its interval."""
    return "{score:.1f} ({interval[0]:.1f} to {interval[1]:.1f})".format_map(scores[kind])


def body(record: Record) -> str:
    """Format the measurements as Markdown."""
    rows = [
        row
        | {kind: score(row["scores"], kind) for kind in _SCORES}
        | {"page": TASKS[row["name"]].page}
        for row in with_names(record.measurements)
    ]
    tasks = table(
        "task | pairs | steps | minutes of training | test lines | exact match, % "
        "| character error rate, % | commit",
        "[{name}](../howto/{page}.md) | {pairs:,} | {steps:,} | {minutes:.1f} | {tested:,} "
        "| {exact_match} | {cer} | {commit}",
        rows,
    )
    return (
        "For each task, a model is trained once, with the commands on the task's page. Scores are "
        "measured on the test text, with beam 4 and the average of the last checkpoints. "
        "The ranges in parentheses are 95% bootstrap intervals. Other programs were running on "
        f"the machine.\n\n{tasks}"
    )


PAGE = ResultPage("sequences", "Tasks other than translation", {"sequences": body})


if __name__ == "__main__":
    main()
