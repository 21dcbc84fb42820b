"""
Noisy copies of a test set: gain and cost of `data.reading` and `data.augment`.

    python -m benchmarks.noise [NAME ...] [--runs DIR]
    python -m benchmarks.noise --test SOURCE REFERENCE RUN ...

The first form trains on each text without augmentation, with all augmentations, and with single
augmentations, on one thread. A single augmentation is tried on the grammar if `data.reading = text`
leaves enough room for improvement there. It is tried on Multi30k if it wins on the grammar.
`--every` tries every augmentation. Each run translates with both readings. Writes
`docs/results/noise.json` and builds the page from it. Runs that already exist in DIR are not
trained again. The second form prints BLEU of existing runs.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import heedful
from benchmarks.noisy_copy import NAMES, Copies, noisy_copies
from benchmarks.report import ResultPage, arguments, measurements_of
from benchmarks.training import last_line, multi30k, text_files, train
from heedful.data.toy_grammar.corpus import write_grammar_text
from heedful.evaluation.validation import score_bleu
from heedful.experiments.page import table
from heedful.experiments.record import Record
from heedful.text.corpus import read_lines

Reading = Literal["exact", "text"]
READINGS: tuple[Reading, ...] = ("exact", "text")
AUGMENT = "capitals:0.07 title:0.07 typos:0.07 punctuation:0.05 symbols:0.07 tags:0.07"
"""All augmentations together, which change a third of the pairs."""
SHARE = 0.1
"""Share of the pairs that a single augmentation changes."""
COST, GAIN = 0.3, 5.0
"""Maximum BLEU lost on the clean test set, and minimum BLEU gained on the noisy copy."""
_SETTINGS = ("train.threads=1", "train.precision=fp32", "train.device=cpu")
_BOTH = {"clean": (), "augmented": (f"data.augment={AUGMENT}",)}
ALONE = tuple(name for name in NAMES if name != "blanks")
RUNS = _BOTH | {name: (f"data.augment={name}:{SHARE}",) for name in ALONE}
_NUMBER = re.compile(r"\d+")

_SHOWN = {"clean": "not augmented", "augmented": "augmented"}
_PIECES = {
    "symbols": "symbols, in the copy with symbols",
    "tags": "placeholders and tags, in the copy with tags",
    "numbers": "numbers inside these placeholders",
}


class NoiseTask(NamedTuple):
    """A text for training, with its recipe and settings."""

    recipe: str
    settings: tuple[str, ...]
    title: str


TASKS = {
    "grammar": NoiseTask(
        "tiny",
        ("train.steps=800", "train.validate_steps=800"),
        "the grammar of the quickstart, with fewer steps",
    ),
    "multi30k": NoiseTask(
        "tiny",
        ("data.vocabulary_size=4000", "train.steps=1500", "train.validate_steps=750"),
        "Multi30k, English to German, with a small model",
    ),
}


def main() -> None:
    """Measure, and write the page or print the table."""
    parser = arguments(__doc__, "noise")
    parser.add_argument("names", nargs="*", metavar="NAME or RUN")
    parser.add_argument("--test", nargs=2, type=Path, metavar=("SOURCE", "REFERENCE"))
    parser.add_argument("--every", action="store_true", help="try each augmentation alone")
    options = parser.parse_args()
    if options.test:
        copies = read_copies(*options.test)
        runs = {run: score_run(Path(run), copies)["scores"] for run in options.names}
        print(_scores_table(runs, {run: run for run in runs}))
        return
    if unknown := sorted({*options.names} - {*TASKS}):
        parser.error(f"NAME must be one of {', '.join(TASKS)}, but is {unknown[0]}")
    values = measurements_of("noise")
    for name in options.names or TASKS:
        before = [*TASKS][: [*TASKS].index(name)]
        texts = {text: values[text] for text in before if text in values}
        alone = ALONE if options.every else winners(texts)
        values[name] = measure(name, TASKS[name], options.runs, alone, options.every)
        PAGE.keep("noise", values, options.commit)


def measure(
    name: str, task: NoiseTask, runs: Path, alone: Sequence[str], every: bool = False
) -> dict[str, Any]:
    """
    Train and test the runs of a text.

    `alone`: augmentations to try alone if enough BLEU is missing on their noisy copy. `every`:
    whether to try them in any case.
    """
    files, valid, test = _files(name, runs)
    copies = read_copies(*test)
    tested: dict[str, Any] = {}
    for run_name in (*_BOTH, *alone):
        if run_name in alone and not every and not room(tested, run_name):
            continue
        run, settings = runs / name / run_name, RUNS[run_name]
        train(run, task.recipe, text_files(files, valid), (*_SETTINGS, *task.settings, *settings))
        chosen = copies if run_name in _BOTH else {key: copies[key] for key in ("clean", run_name)}
        tested[run_name] = score_run(run, chosen)
    steps = last_line(runs / name / "clean")["step"]
    return {"steps": steps, "lines": len(copies["clean"][0]), "runs": tested}


def read_copies(source: Path, reference: Path) -> Copies:
    """Make the noisy copies of a test set."""
    return noisy_copies(list(read_lines(source)), list(read_lines(reference)))


def score_run(run: Path, copies: Copies, readings: Sequence[Reading] = READINGS) -> dict[str, Any]:
    """
    Translate the copies, with both readings unless `readings` names one.

    Returns the BLEU of each copy and the shares of kept pieces; with both readings also how many
    translations of the clean test set depend on the reading.
    """
    texts, scores, shares = {}, {}, {}
    for reading in readings:
        translator = heedful.Translator.load(
            run, device="cpu", precision="fp32", threads=1, reading=reading
        )
        language = translator.run.config.data.target_language
        texts[reading] = {
            name: [translation.text for translation in translator.translate(sources)]
            for name, (sources, _) in copies.items()
        }
        scores[reading] = {
            name: score_bleu(copies[name][1], language)(lines)
            for name, lines in texts[reading].items()
        }
        shares[reading] = kept_shares(copies, texts[reading])
    result: dict[str, Any] = {"scores": scores, "kept": shares}
    if len(texts) > 1:
        result["changed"] = changed_lines(*(texts[reading]["clean"] for reading in readings))
    return result


def changed_lines(first: Sequence[str], second: Sequence[str]) -> int:
    """Count the lines in which two translations differ."""
    return sum(
        first_line != second_line for first_line, second_line in zip(first, second, strict=True)
    )


def kept_shares(copies: Copies, texts: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Measure the shares of symbols, placeholders and numbers that translations preserve."""
    shares = {}
    for name in ("symbols", "tags"):
        if name in texts:
            lines = [*zip(copies["clean"][0], copies[name][0], texts[name], strict=True)]
            pieces = [(added_pieces(old, noisy), text) for old, noisy, text in lines]
            shares[name] = _share(kept_pieces(added, text) for added, text in pieces)
            if name == "tags":
                shares["numbers"] = _share(kept_numbers(added, text) for added, text in pieces)
    return shares


def added_pieces(original: str, noisy: str) -> list[str]:
    """List the pieces that a noisy copy adds before and after the original line."""
    before, _, after = noisy.partition(original)
    return [piece for piece in (before.strip(), after.strip()) if piece]


def kept_pieces(pieces: Sequence[str], translation: str) -> tuple[int, int]:
    """Count the pieces that the translation has exactly once, and all pieces."""
    return sum(translation.count(piece) == 1 for piece in pieces), len(pieces)


def kept_numbers(pieces: Sequence[str], translation: str) -> tuple[int, int]:
    """Count the numbers inside pieces that the translation also has, and all numbers."""
    numbers = Counter(_NUMBER.findall(" ".join(pieces)))
    return (numbers & Counter(_NUMBER.findall(translation))).total(), numbers.total()


def _share(counts: Iterable[tuple[int, int]]) -> float:
    """Divide the kept pieces by all pieces."""
    preserved, total = map(sum, zip(*counts, strict=True))
    return preserved / total


def _files(name: str, runs: Path) -> tuple[list[Path], list[Path], list[Path]]:
    """Find the training, validation and test files of a text."""
    if name == "multi30k":
        parts = ("train", "val", "test_2016_flickr")
        paths = ([multi30k(part, language) for language in ("en", "de")] for part in parts)
    else:
        folder = runs / "text"
        if not folder.exists():
            write_grammar_text(folder)
        parts = ("train", "valid", "test")
        paths = ([folder / f"{part}.{language}" for language in ("en", "fr")] for part in parts)
    files, valid, test = paths
    return files, valid, test


class AugmentationEffect(NamedTuple):
    """Cost and gain in BLEU of a single augmentation with `data.reading = text`."""

    cost: float
    gain: float

    @property
    def wins(self) -> bool:
        """Tell whether the cost is below `COST` and the gain above `GAIN`."""
        return self.cost < COST and self.gain > GAIN


def room(runs: Mapping[str, Any], name: str) -> bool:
    """Tell whether enough BLEU is missing on a noisy copy for its augmentation to win."""
    return bool(runs["clean"]["scores"]["text"][name] < 100 - GAIN)


def effect(runs: Mapping[str, Any], name: str) -> AugmentationEffect:
    """Compare the run with one augmentation with the run without augmentation."""
    before, after = (runs[run]["scores"]["text"] for run in ("clean", name))
    return AugmentationEffect(before["clean"] - after["clean"], after[name] - before[name])


def mixture_cost(runs: Mapping[str, Any]) -> float:
    """Compute the BLEU that all augmentations cost on the clean test set, read as text."""
    before, after = (runs[run]["scores"]["text"]["clean"] for run in _BOTH)
    return float(before - after)


def winners(texts: Mapping[str, Any]) -> list[str]:
    """List the augmentations that win on every text."""
    runs = [text["runs"] for text in texts.values()]
    return [
        name for name in ALONE if all(name in text and effect(text, name).wins for text in runs)
    ]


def body(record: Record) -> str:
    """Format the measurements as Markdown."""
    texts = {name: record.measurements[name] for name in TASKS if name in record.measurements}
    parts = [
        "These tables compare BLEU on a clean test set with BLEU on noisy copies of it, for both "
        "values of `data.reading`, with and without `data.augment`. `benchmarks/noisy_copy.py` "
        "makes the copies; it changes capitals, punctuation, symbols and tags in the references, "
        "too. Each model was trained once, so differences of a few tenths of a point may be due to "
        "chance.",
        *(part for name, text in texts.items() for part in _of_text(TASKS[name], text)),
    ]
    if len(texts) == len(TASKS):
        parts += ["## Augmentation in the recipes", _decision(texts)]
    return "\n\n".join(parts)


def _of_text(task: NoiseTask, text: Mapping[str, Any]) -> Iterator[str]:
    """Lay out the figures of a text."""
    runs = text["runs"]
    changed = " and ".join(f"{runs[run]['changed']} ({_SHOWN[run]})" for run in _BOTH)
    yield f"## {task.title[:1].upper()}{task.title[1:]}"
    yield (
        f"Models use the recipe `{task.recipe}` and are trained for {text['steps']:,} steps. They "
        "translate in fp32 with the average of the last checkpoints. "
        f"“Augmented” columns have `data.augment = {AUGMENT}`. Of the {text['lines']:,} "
        f"translations of the clean test set, `data.reading = text` changes {changed}."
    )
    yield _scores_table({run: runs[run]["scores"] for run in _BOTH}, _SHOWN)
    yield "Share of the added pieces that translations keep byte for byte, in percent:"
    yield _columns_table(
        "kept",
        {
            shown: [100 * shares[piece] for run in _BOTH for shares in runs[run]["kept"].values()]
            for piece, shown in _PIECES.items()
        },
        _heads(_SHOWN),
    )
    if not (names := [name for name in ALONE if name in runs]):
        return
    yield (
        "Each model in the next table is trained with one augmentation, which changes "
        f"{SHARE:.0%} of the pairs. It is tested on the clean test set and on the noisy copy that "
        "is named after the augmentation. Cost and gain are relative to the model without "
        "augmentation, with `data.reading = text`:"
    )
    yield table(
        "augmentation | clean test set | its copy, exact | its copy, text | cost | gain",
        "{name} | {clean:.1f} | {exact:.1f} | {text:.1f} | {cost:+.1f} | {gain:+.1f}",
        [
            {
                "name": name,
                "clean": runs[name]["scores"]["text"]["clean"],
                **{reading: runs[name]["scores"][reading][name] for reading in READINGS},
                **effect(runs, name)._asdict(),
            }
            for name in names
        ],
    )


def _decision(texts: Mapping[str, Any]) -> str:
    """State which augmentations win."""
    chosen = winners(texts)
    costs = " and ".join(f"{mixture_cost(text['runs']):.1f}" for text in texts.values())
    result = (
        f"These win: {', '.join(chosen)}."
        if chosen
        else "None wins, so no recipe has an augmentation."
    )
    return (
        f"An augmentation wins if it costs less than {COST} BLEU on both clean test sets and gains "
        f"more than {GAIN:.0f} on both noisy copies. It is compared with the model without "
        f"augmentation, with `data.reading = text`. {result} "
        f"All augmentations together cost {costs} BLEU on the clean test sets."
    )


def _scores_table(runs: Mapping[str, Mapping[str, Any]], shown: Mapping[str, str]) -> str:
    """Lay out BLEU: a row for each copy, a column for each run and reading."""
    columns = [scores for readings in runs.values() for scores in readings.values()]
    rows = {name: [scores[name] for scores in columns] for name in columns[0]}
    return _columns_table("test set", rows, _heads({run: shown[run] for run in runs}))


def _heads(shown: Mapping[str, str]) -> list[str]:
    """Name the columns of runs and readings."""
    return [f"{name}, {reading}" for name in shown.values() for reading in READINGS]


def _columns_table(head: str, rows: Mapping[str, Sequence[float]], heads: Sequence[str]) -> str:
    """Lay out a table of numbers, with a column for each of `heads`."""
    lines = [
        {"name": name, "values": " | ".join(f"{value:.1f}" for value in values)}
        for name, values in rows.items()
    ]
    return table(f"{head} | {' | '.join(heads)}", "{name} | {values}", lines)


PAGE = ResultPage("noise", "Noisy text", {"noise": body})


if __name__ == "__main__":
    main()
