"""
What `data.augment` brings on noisy copies of a test set, and what it costs on the clean one.

    python -m benchmarks.noise [NAME ...] [--runs DIR]
    python -m benchmarks.noise --test SOURCE REFERENCE RUN ...

The first form trains each text twice, as it stands and augmented, on one thread, and writes
`docs/results/noise.json` and the page from it; what DIR holds is not trained again. The second
prints BLEU of runs that are there.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import heedful
from benchmarks.noisy_copy import noisy_copies
from benchmarks.report import ResultPage, arguments, measured
from benchmarks.training import last_line, multi30k, text_files, train
from heedful.data.toy_grammar.corpus import write_grammar_text
from heedful.evaluation.bleu import corpus_bleu
from heedful.experiments.page import table
from heedful.experiments.record import Record
from heedful.text.corpus import read_lines

AUGMENT = "capitals:0.07 title:0.07 typos:0.07 punctuation:0.05 symbols:0.07 tags:0.07"
"""A third of the pairs is changed."""
_SETTINGS = ("train.threads=1", "train.precision=fp32", "train.device=cpu")
RUNS = {"clean": (), "augmented": (f"data.augment={AUGMENT}",)}

_SHOWN = {"clean": "trained on the text as it stands", "augmented": "with `data.augment`"}


class NoiseTask(NamedTuple):
    """A text to train on."""

    recipe: str
    settings: tuple[str, ...]
    title: str


TASKS = {
    "grammar": NoiseTask("tiny", ("train.validate_steps=600",), "the grammar of the quickstart"),
    "multi30k": NoiseTask(
        "tiny",
        ("data.vocabulary_size=4000", "train.steps=1500", "train.validate_steps=750"),
        "Multi30k, English to German, by a small model in minutes",
    ),
}


def main() -> None:
    """Measure, and write the page or print the table."""
    parser = arguments(__doc__, "noise")
    parser.add_argument("names", nargs="*", metavar="NAME or RUN")
    parser.add_argument("--test", nargs=2, type=Path, metavar=("SOURCE", "REFERENCE"))
    options = parser.parse_args()
    if options.test:
        print(_scores_table({run: scores(Path(run), *options.test) for run in options.names}))
        return
    if unknown := sorted({*options.names} - {*TASKS}):
        parser.error(f"NAME must be one of {', '.join(TASKS)}, but is {unknown[0]}")
    values = measured("noise")
    for name in options.names or TASKS:
        values[name] = measure(name, TASKS[name], options.runs)
        PAGE.keep("noise", values, options.commit)


def measure(name: str, task: NoiseTask, runs: Path) -> dict[str, Any]:
    """Train and score both runs of a text."""
    files, valid, test = _files(name, runs)
    found: dict[str, Any] = {"scores": {}, "steps": {}}
    for run_name, settings in RUNS.items():
        run = runs / name / run_name
        train(run, task.recipe, text_files(files, valid), (*_SETTINGS, *task.settings, *settings))
        found["scores"][run_name] = scores(run, *test)
        found["steps"][run_name] = last_line(run)["step"]
    return found


def scores(run: Path, source: Path, reference: Path) -> dict[str, float]:
    """Score a run on the clean test set and on each noisy copy."""
    translator = heedful.Translator.load(run)
    language = translator.run.config.data.target_language
    copies = noisy_copies(list(read_lines(source)), list(read_lines(reference)))
    return {
        name: corpus_bleu(
            [translation.text for translation in translator.translate(sources)],
            references,
            language=language,
        )
        for name, (sources, references) in copies.items()
    }


def _files(name: str, runs: Path) -> tuple[list[Path], list[Path], list[Path]]:
    """Find the files of training, validation and test of a text."""
    if name == "multi30k":
        parts = ("train", "val", "test_2016_flickr")
        found = ([multi30k(part, language) for language in ("en", "de")] for part in parts)
    else:
        folder = runs / "text"
        if not folder.exists():
            write_grammar_text(folder)
        parts = ("train", "valid", "test")
        found = ([folder / f"{part}.{language}" for language in ("en", "fr")] for part in parts)
    files, valid, test = found
    return files, valid, test


def _scores_table(values: dict[str, dict[str, float]]) -> str:
    """Lay BLEU out, a row for each copy and a column for each run."""
    copies: Sequence[str] = [*next(iter(values.values()))]
    rows = [
        {"copy": name, "values": " | ".join(f"{found[name]:.1f}" for found in values.values())}
        for name in copies
    ]
    return table(f"test set | {' | '.join(values)}", "{copy} | {values}", rows)


def body(record: Record) -> str:
    """Lay the figures out."""
    parts = [
        "BLEU on a test set and on noisy copies of it, of two models: one trained on the text as "
        "it stands, one with `data.augment`. The copies are made by `benchmarks/noisy_copy.py`; "
        "capitals, symbols and tags are in their references too. The changes of the copies are of "
        "the kinds that the augmented model was trained with, but the blanks. One seed each.",
    ]
    for name, task in TASKS.items():
        if found := record.measurements.get(name):
            steps = found["steps"]["clean"]
            parts += [
                f"## {task.title[:1].upper()}{task.title[1:]}",
                f"Recipe `{task.recipe}`, {steps:,} steps, average of the last checkpoints. "
                f"`data.augment = {AUGMENT}`.",
                _scores_table({_SHOWN[run]: values for run, values in found["scores"].items()}),
            ]
    return "\n\n".join(parts)


PAGE = ResultPage("noise", "Noisy text", {"noise": body})


if __name__ == "__main__":
    main()
