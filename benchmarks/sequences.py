"""
Dates, kana, phonemes and questions: each page's commands from the first to the score.

    python -m benchmarks.sequences [NAME ...] [--runs DIR]

An hour on two cores for all. Needs the extra `phonemes`. What DIR holds is not trained again.
Writes `docs/results/sequences.json`, and what is written from it; tasks that are not named keep
their figures.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.figures import rewrite
from benchmarks.report import RESULTS, ROOT, commit, heedful, keep, read


class SequenceTask(NamedTuple):
    """A task of docs/howto: its recipe has the name of its page."""

    recipe: str
    data: str
    """The name for `heedful data get`."""
    source: str
    target: str
    """Endings of its files."""


TASKS = (
    SequenceTask("dates", "dates", "words", "iso"),
    SequenceTask("kana", "kana", "kana", "romaji"),
    SequenceTask("phonemes", "cmudict", "word", "phonemes"),
    SequenceTask("questions", "questions", "question", "answer"),
)
_PAGES = {"kana": "transliteration"}
_SCORES = ("exact_match", "cer")


def main() -> None:
    """Train and score the tasks, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "sequences")
    options = parser.parse_args()
    known = [task.recipe for task in TASKS]
    if unknown := set(options.names) - set(known):
        parser.error(f"tasks are {', '.join(known)}, but {', '.join(sorted(unknown))} came")
    there = (RESULTS / "sequences.json").exists()
    found = read("sequences")["found"] if there else {}
    for task in TASKS:
        if task.recipe in (options.names or known):
            measured = commit()
            found[task.recipe] = {"commit": measured, **measure(task, options.runs)}
            keep("sequences", {name: found[name] for name in known if name in found}, measured)
    rewrite()
    print(body(found))


def measure(task: SequenceTask, runs: Path) -> dict[str, Any]:
    """Do what the page of a task says."""
    text, run = runs / "text" / task.data, runs / task.recipe
    if not text.exists():
        text.parent.mkdir(parents=True, exist_ok=True)
        heedful("data", "get", task.data, "--out", text)
    files = [text / f"{part}.{side}" for part in ("train", "valid", "test") for side in task[2:]]
    train, valid, test = files[:2], files[2:4], files[4:]
    given = ("--source", train[0], "--target", train[1])
    checked = ("--valid-source", valid[0], "--valid-target", valid[1])
    again = ("--resume",) if run.exists() else ()
    heedful("train", task.recipe, *given, *checked, "--out", run, *again)
    heedful("average", run)
    output = run / f"found.{task.target}"
    heedful("translate", run, "--input", test[0], "--output", output)
    scored = ("--hypothesis", output, "--reference", test[1])
    asked = ("evaluate", *scored, "--confidence", "--trials", 1000, "--json")
    scores = json.loads(heedful(*asked).stdout)
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]
    last = [line for line in lines if "target_tokens" in line][-1]
    return {
        "pairs": _lines(train[0]),
        "tested": _lines(test[0]),
        "steps": last["step"],
        "minutes": last["seconds"] / 60,
        "scores": {name: scores[name] for name in _SCORES},
    }


def _lines(file: Path) -> int:
    """Count the lines of a file."""
    return file.read_bytes().count(b"\n")


def interval(score: dict[str, Any]) -> str:
    """Write a score with its interval."""
    low, high = score["interval"]
    return f"{score['score']:.1f} ({low:.1f} to {high:.1f})"


def body(found: dict[str, Any]) -> str:
    """Lay the figures out."""
    rows = "\n".join(
        f"| [{name}](../howto/{_PAGES.get(name, name)}.md) | {one['pairs']:,} | {one['steps']:,} "
        f"| {one['minutes']:.1f} | {one['tested']:,} | {interval(one['scores']['exact_match'])} "
        f"| {interval(one['scores']['cer'])} | {one['commit']} |"
        for name, one in found.items()
    )
    return (
        "Other tasks of lines, each trained once by the recipe of its name; the commands are those "
        "of its page. Scores are of the test text, with the average of the last checkpoints, beam "
        "4; in brackets 95 of 100 drawn samples.\n\n"
        "| task | pairs | steps | minutes of training | lines of the test | exact match, % "
        "| character error rate, % | commit |\n"
        f"| --- | --- | --- | --- | --- | --- | --- | --- |\n{rows}\n\n"
        "The minutes count what stood beside a training on this machine, too.\n\n"
        "```sh\npython -m benchmarks.sequences\n```"
    )


if __name__ == "__main__":
    main()
