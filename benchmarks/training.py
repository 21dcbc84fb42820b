"""Training, averaging, translation and scores for the benchmarks of quality."""

import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import data_folder, heedful
from heedful.experiments.page import fold, table
from heedful.experiments.record import Record

SET = "test_2016_flickr"


def chosen(settings: Iterable[str]) -> list[str]:
    """Convert settings to command-line arguments."""
    return [word for setting in settings for word in ("--set", setting)]


def multi30k(part: str, language: str) -> Path:
    """Return the path of a raw file of Multi30k."""
    return data_folder() / "multi30k" / "raw" / f"{part}.{language}.gz"


def text_files(train: Sequence[Path], valid: Sequence[Path] = ()) -> list[str | Path]:
    """Convert the training files and the validation files to command-line arguments."""
    options = ("--source", "--target", "--valid-source", "--valid-target")
    return [word for pair in zip(options, (*train, *valid), strict=False) for word in pair]


def multi30k_files(valid: bool = True) -> list[str | Path]:
    """Return the files of Multi30k English-German as command-line arguments."""
    parts = ("train", "val") if valid else ("train",)
    return text_files(*([multi30k(part, language) for language in ("en", "de")] for part in parts))


def train(
    run: Path,
    recipe: str,
    files: Sequence[object],
    settings: Iterable[str] = (),
    more: Sequence[object] = (),
    average: Sequence[object] = (),
    task: Sequence[str] = (),
) -> None:
    """
    Train, or finish a training run, and average the checkpoints; a finished run does not change.

    `more`, `average`: additional arguments of `train` and `average`. `task`: words before `train`.
    """
    if not (run / "average").exists():
        resume = ("--resume",) if run.exists() else ()
        words = (recipe, *files, "--out", run, *chosen(settings), *more, *resume)
        heedful(*task, "train", *words)
        heedful("average", run, *average)


def read_log(run: Path) -> list[dict[str, Any]]:
    """Read the lines of a training run's log."""
    return [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]


def last_line(run: Path) -> dict[str, Any]:
    """Read the last training line of a log."""
    return [line for line in read_log(run) if "target_tokens" in line][-1]


def validations(run: Path, metric: str = "bleu") -> list[dict[str, Any]]:
    """Read the validations of a training run."""
    names = ("step", "valid_perplexity", metric)
    return [{name: line[name] for name in names} for line in read_log(run) if metric in line]


def describe_training(run: Path, metric: str = "bleu") -> dict[str, Any]:
    """Read the steps, time, tokens, size and validations of a training run."""
    last = last_line(run)
    return {
        "steps": last["step"],
        "minutes": last["seconds"] / 60,
        "target_tokens": last["target_tokens"],
        "parameters": info(run)["parameters"],
        "validations": validations(run, metric),
    }


def info(run: Path) -> dict[str, Any]:
    """Return the description of a run by `heedful info`."""
    described: dict[str, Any] = json.loads(heedful("info", run, "--json"))
    return described


def translate(run: Path, output: Path, *options: object, part: str = SET) -> list[str]:
    """Translate a part of Multi30k, and return the translations."""
    source = multi30k(part, "en")
    heedful("translate", run, "--input", source, "--output", output, *options)
    return output.read_text("utf-8").splitlines()


def read_lines(path: Path) -> list[str]:
    """Read the lines of a compressed text."""
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def train_on_multi30k(
    run: Path, recipe: str, settings: Sequence[str] = (), groups: Sequence[Sequence[int]] = ()
) -> tuple[dict[str, Any], list[str]]:
    """
    Train on Multi30k English-German, and score the averaged model in lower case.

    `groups`: rows of the test set that are scored separately. Returns the scores with a description
    of the training, and the translations.
    """
    from heedful.evaluation.bleu import evaluate_texts

    train(run, recipe, multi30k_files(), settings)
    lines, reference = translate(run, run / f"{SET}.de"), read_lines(multi30k(SET, "de"))

    def bleu(rows: Sequence[int]) -> float:
        pairs = [lines[row] for row in rows], [[reference[row] for row in rows]]
        return evaluate_texts(*pairs, language="de", lowercase=True).bleu.score

    scores = {"bleu": bleu(range(len(lines))), "by_length": [bleu(rows) for rows in groups]}
    return scores | describe_training(run), lines


def score_sentence(measurements: dict[str, Any]) -> str:
    """State the score of a model trained on Multi30k, with the size of its training."""
    return (
        f"On {SET}, with beam 4 and the average of the last checkpoints, the model has a "
        f"lower-cased BLEU of **{measurements['bleu']:.1f}**. It has "
        f"{measurements['parameters']:,} weights and was trained for {measurements['steps']:,} "
        f"steps and {measurements['target_tokens']:,} target tokens."
    )


def validation_table(
    lines: Sequence[dict[str, Any]], heads: str = "step | perplexity | BLEU", more: str = ""
) -> str:
    """Lay out validations as a table. `more`: format of additional cells."""
    cells = "{step:,} | {valid_perplexity:.2f} | {bleu:.1f}" + more
    return (
        "Validation during training (greedy search, cased BLEU, a single checkpoint):\n\n"
        + table(heads, cells, lines)
    )


def note(record: Record) -> str:
    """Lay out the remark that was added to a record by hand; empty if there is none."""
    remark = record.measurements.get("note", "")
    return "\n\n" + fold("About this run", [remark]) if remark else ""
