"""Recipes for two cores on Multi30k English-German: train, average, translate, score."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import heedful
from heedful.evaluation.bleu import evaluate_texts

SET = "test_2016_flickr"


def train_and_score(
    raw: Path,
    run: Path,
    recipe: str,
    settings: Sequence[str] = (),
    groups: Sequence[Sequence[int]] = (),
) -> dict[str, Any]:
    """
    Train, or finish a training, and score the average; a finished run is only measured again.

    `settings`: arguments of `heedful train`. `groups`: rows of the test set that are scored apart.
    """
    train(raw, run, recipe, settings)
    output = run / f"{SET}.de"
    heedful("translate", run, "--input", raw / f"{SET}.en.gz", "--output", output)
    lines, reference = output.read_text("utf-8").splitlines(), lines_of(raw / f"{SET}.de.gz")

    def bleu(rows: Sequence[int]) -> float:
        chosen, wanted = [lines[row] for row in rows], [[reference[row] for row in rows]]
        return evaluate_texts(chosen, wanted, language="de", lowercase=True).bleu.score

    log = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]
    last = [line for line in log if "target_tokens" in line][-1]
    return {
        "bleu": bleu(range(len(lines))),
        "by_length": [bleu(rows) for rows in groups],
        "steps": last["step"],
        "minutes": last["seconds"] / 60,
        "target_tokens": last["target_tokens"],
        "parameters": json.loads(heedful("info", run, "--json").stdout)["parameters"],
        "validations": [
            {key: line[key] for key in ("step", "valid_perplexity", "bleu")}
            for line in log
            if "bleu" in line
        ],
    }


def train(raw: Path, run: Path, recipe: str, settings: Sequence[str]) -> None:
    """Train, or finish a training, and average."""
    text = ("--source", raw / "train.en.gz", "--target", raw / "train.de.gz")
    valid = ("--valid-source", raw / "val.en.gz", "--valid-target", raw / "val.de.gz")
    if not (run / "average").exists():
        resume = ("--resume",) if run.exists() else ()
        heedful("train", recipe, *text, *valid, "--out", run, *settings, *resume)
        heedful("average", run)


def lines_of(path: Path) -> list[str]:
    """Read a compressed text."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()
