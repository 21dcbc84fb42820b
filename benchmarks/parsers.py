"""
Three parsers with the same tuning, scored on sentences that were not used for tuning.

    python -m benchmarks.parsers speed | trials | seeds | grammar [--system NAME ...]

The parsers are a Transformer, an LSTM with attention, and a Transformer decoder on top of an LSTM
encoder. They learn from files 1 to 149 of the Wall Street Journal sample. `speed` measures the
speed of each parser on an idle machine. It determines the steps of all later trainings, so that
they take equal time. `trials` trains each parser with five learning rates; the rate with the lowest
perplexity on files 160 to 179 is chosen. `seeds` trains each parser with the chosen rate and three
seeds. `grammar` reads two grammars off the same trees. Files 150 to 159 are parsed at the end and
are not used for tuning. Recorded results are not measured again. Writes `docs/results/parsers.json`
and builds the page from it.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.parsing import BEAM, PENALTY, with_interval, write_brackets, write_trees
from benchmarks.pcfg import WSJ, measure_grammar, read_treebank
from benchmarks.report import ResultPage, arguments, data_folder, measurements_of, outputs_of
from benchmarks.training import last_line, read_log, train
from heedful.experiments.page import table
from heedful.experiments.record import Record
from heedful.search.settings import SearchOptions
from heedful.tasks.parsing.parser import Parser
from heedful.tasks.parsing.trees.score import score_trees
from heedful.tasks.parsing.trees.tree import Tree

FIRST_UNSEEN, FIRST_DEV = "wsj_0150", "wsj_0160"
BATCH, SPEED_STEPS, TRIAL_MINUTES, MINUTES = 2048, 200, 4.0, 20.0
RATES = ("7.5e-4", "1.5e-3", "3e-3", "6e-3", "1.2e-2")
SEEDS = (1, 2, 3)
_VALIDATIONS = 4
_COMMON = (f"train.batch_tokens={BATCH}", "train.threads=1", "train.validation_samples=0")


class TunedParser(NamedTuple):
    """A parser and its recipe."""

    title: str
    recipe: str


SYSTEMS = {
    "transformer": TunedParser("Transformer, 3 + 3 layers", "parsing-small-transformer"),
    "lstm": TunedParser("LSTM with attention, 2 + 1 layers", "parsing-small-lstm"),
    "hybrid": TunedParser("LSTM encoder, Transformer decoder, 2 + 3 layers", "parsing-small"),
}


class SampleParts(NamedTuple):
    """The sample of the Wall Street Journal in three parts."""

    train: list[Tree]
    unseen: list[Tree]
    dev: list[Tree]


class Training(NamedTuple):
    """A training of a system."""

    kind: str
    """`speed`, `trials` or `seeds`."""
    system: str
    choice: str
    """The learning rate, or the seed."""
    settings: tuple[str, ...]

    @property
    def key(self) -> str:
        """The training's key in the record."""
        return f"{self.system}, {self.choice}"


def main() -> None:
    """Run all measurements that the record lacks."""
    parser = arguments(__doc__, "parsers")
    parser.add_argument("kind", choices=("speed", "trials", "seeds", "grammar"))
    parser.add_argument("--system", action="append", default=[], choices=[*SYSTEMS])
    options = parser.parse_args()
    parts = read_parts(data_folder())
    if options.kind == "grammar":
        _keep("grammar", {"rows": list(grammars(parts))}, options.commit)
        return
    for training in trainings(options.kind):
        known = measurements_of("parsers").get(options.kind, {})
        if training.key in known or (options.system and training.system not in options.system):
            continue
        print(training.key, flush=True)
        run = options.runs / options.kind / training.key.replace(", ", "-")
        result = _MEASURES[options.kind](training, run, parts) | {"commit": options.commit}
        trees = result.pop("trees", {})
        outputs = {f"{training.key}, {part}": parses for part, parses in trees.items()}
        _keep(options.kind, known | {training.key: result}, options.commit, outputs)


def _keep(
    kind: str, part: dict[str, Any], commit: str, outputs: Mapping[str, list[str]] | None = None
) -> None:
    """Write one part of the record, and add outputs to the earlier outputs."""
    outputs = outputs_of("parsers") | {**(outputs or {})}
    PAGE.keep("parsers", measurements_of("parsers") | {kind: part}, commit, outputs=outputs)


def read_parts(data: Path) -> SampleParts:
    """Divide the files of the sample."""
    parts = SampleParts([], [], [])
    for name, trees in read_treebank(data / WSJ).items():
        parts[(name >= FIRST_UNSEEN) + (name >= FIRST_DEV)].extend(trees)
    return parts


def trainings(kind: str) -> Iterator[Training]:
    """List the trainings of a kind; `seeds` has only systems whose trials are complete."""
    for name in SYSTEMS:
        if kind == "speed":
            yield Training(kind, name, f"{SPEED_STEPS} steps", _COMMON)
        elif kind == "trials":
            for rate in RATES:
                rated = (*_COMMON, f"train.learning_rate={rate}")
                yield Training(kind, name, rate, rated)
        elif (best := chosen_rate(measurements_of("parsers").get("trials", {}), name)) is not None:
            for seed in SEEDS:
                seeded = (f"train.learning_rate={best}", f"train.seed={seed}")
                yield Training(kind, name, f"seed {seed}", (*_COMMON, *seeded))


def chosen_rate(trials: dict[str, Any], system: str) -> str | None:
    """Return the learning rate with the lowest perplexity; None until all trials are complete."""
    complete = {rate: trials[key] for rate in RATES if (key := f"{system}, {rate}") in trials}
    if len(complete) < len(RATES):
        return None
    return min(complete, key=lambda rate: float(complete[rate]["perplexity"]))


def steps_in(system: str, minutes: float) -> int:
    """Compute the number of steps that a system takes in some minutes, from its measured rate."""
    speed = measurements_of("parsers")["speed"][f"{system}, {SPEED_STEPS} steps"]
    return max(_VALIDATIONS, int(minutes * 60 / speed["seconds_per_step"]))


def fit(training: Training, run: Path, parts: SampleParts, steps: int, validations: int) -> None:
    """Train a parser for a given number of steps."""
    files = write_trees(run, parts.train, parts.dev)
    lengths = (
        f"train.steps={steps}",
        f"train.warmup={max(1, steps // 12)}",
        f"train.validate_steps={-(-steps // validations)}",
        f"train.checkpoint_steps={max(1, steps // 40)}",  # the average is over the last quarter
    )
    system = SYSTEMS[training.system]
    train(run, system.recipe, files, (*training.settings, *lengths), task=("parse",))


def measure_speed(training: Training, run: Path, parts: SampleParts) -> dict[str, Any]:
    """Measure the seconds per step in the second half of a short training."""
    fit(training, run, parts, SPEED_STEPS, 1)
    lines = [line for line in read_log(run) if "target_tokens" in line]
    first, last = lines[len(lines) // 2 - 1], lines[-1]
    steps = last["step"] - first["step"]
    return {"seconds_per_step": (last["seconds"] - first["seconds"]) / steps}


def measure_trial(training: Training, run: Path, parts: SampleParts) -> dict[str, Any]:
    """Train for a short time, and read the validations."""
    steps = steps_in(training.system, TRIAL_MINUTES)
    fit(training, run, parts, steps, _VALIDATIONS)
    validations = [line for line in read_log(run) if "valid_loss" in line]
    best = min(validations, key=lambda line: float(line["valid_loss"]))
    return {"steps": steps, "perplexity": best["valid_perplexity"], "f1": best["f1"]}


def measure_seed(training: Training, run: Path, parts: SampleParts) -> dict[str, Any]:
    """Train, and parse both the files that selected the rate and the unseen files."""
    steps = steps_in(training.system, MINUTES)
    fit(training, run, parts, steps, 2 * _VALIDATIONS)
    parser = Parser.load(run, threads=1, precision="fp32", device="cpu")
    options = SearchOptions(beam=BEAM, length_penalty=PENALTY)
    trees: dict[str, list[str]] = {}
    scores = {"steps": steps, "minutes": last_line(run)["seconds"] / 60, "trees": trees}
    for name, gold in (("dev", parts.dev), ("unseen", parts.unseen)):
        lines = [" ".join(tree.words) for tree in gold]
        parses = parser.parse(lines, options, [tree.tags for tree in gold])
        scores[name] = with_interval(score_trees(gold, [parse.tree for parse in parses]))
        trees[name] = [write_brackets(parse.tree) for parse in parses]
    return scores


_MEASURES = {"speed": measure_speed, "trials": measure_trial, "seeds": measure_seed}


def grammars(parts: SampleParts) -> Iterator[dict[str, Any]]:
    """Score both grammars on both parts."""
    for parents in (False, True):
        yield {
            "parents": parents,
            "dev": measure_grammar(parts.train, parts.dev, parents=parents),
            "unseen": measure_grammar(parts.train, parts.unseen, parents=parents),
        }


def body(record: Record) -> str:
    """Lay out the systems and their trials."""
    parts = record.measurements
    rows = [_grammar_row(row) for row in parts.get("grammar", {}).get("rows", [])]
    rows += [row for name in SYSTEMS if (row := _system_row(parts.get("seeds", {}), name))]
    tables = [
        _HEAD,
        table(
            " | F1, files 160 to 179 | F1, files 150 to 159 | seeds | steps",
            "{title} | {dev} | {unseen} | {seeds} | {steps}",
            rows,
        ),
    ]
    if trials := parts.get("trials"):
        head = "system | learning rate | steps | perplexity | F1, greedy | "
        cells = "{title} | {rate} | {steps:,} | {perplexity:.2f} | {f1:.1f} | {mark}"
        highest = [
            SYSTEMS[name].title for name in SYSTEMS if chosen_rate(trials, name) == RATES[-1]
        ]
        edge = f" Higher rates were not tried for: {'; '.join(highest)}." if highest else ""
        tables += ["## Trials", _TRIALS + edge, table(head, cells, list(_trial_rows(trials)))]
    return "\n\n".join(tables)


def _grammar_row(row: dict[str, Any]) -> dict[str, Any]:
    name = "grammar (PCFG)" + (", labels with the parent phrase" if row["parents"] else "")
    f1 = {part: f"{row[part]['f1']:.1f}" for part in ("dev", "unseen")}
    return {"title": name, "seeds": "", "steps": "", **f1}


def _system_row(seeds: dict[str, Any], name: str) -> dict[str, Any]:
    """Format the mean and spread over the seeds of a system; empty if no seed is trained."""
    scores = [seeds[key] for seed in SEEDS if (key := f"{name}, seed {seed}") in seeds]
    if not scores:
        return {}
    f1 = {part: _spread([score[part]["f1"] for score in scores]) for part in ("dev", "unseen")}
    steps = f"{scores[0]['steps']:,}"
    return {"title": SYSTEMS[name].title, "seeds": len(scores), "steps": steps, **f1}


def _spread(values: Sequence[float]) -> str:
    mean = f"{statistics.mean(values):.1f}"
    return f"{mean} ± {statistics.stdev(values):.1f}" if len(values) > 1 else mean


def _trial_rows(trials: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for key, trial in trials.items():
        name, rate = key.split(", ")
        mark = "**chosen**" if chosen_rate(trials, name) == rate else ""
        yield trial | {"title": SYSTEMS[name].title, "rate": rate, "mark": mark}


_HEAD = (
    "The table compares parsers by [labeled F1](../explain/parsing.md#the-score) on sentences of "
    "the Wall Street Journal sample, parsed from words alone. Each parser is trained on files 1 to "
    f"149, and neural parsers for as many steps as take {MINUTES:.0f} minutes on one thread. The "
    "learning rate with the lowest perplexity on files 160 to 179 is used; files 150 to 159 are "
    "used only for the test. Scores of neural parsers are means over seeds, ± their standard "
    f"deviation. They use the average of the last ten checkpoints, beam {BEAM} and length penalty "
    f"{PENALTY}."
)
_TRIALS = (
    "Each neural parser is trained with five learning rates, each time for as many steps as take "
    f"{TRIAL_MINUTES:.0f} minutes. The rate with the lowest perplexity on files 160 to 179 is "
    "chosen."
)
PAGE = ResultPage("parsers", "Three parsers with the same tuning", {"parsers": body})


if __name__ == "__main__":
    main()
