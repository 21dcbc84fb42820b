"""
Three parsers with the same tuning, scored on sentences that were not scored for tuning.

    python -m benchmarks.parsers speed | trials | seeds | grammar [--system NAME ...]

The parsers are a Transformer, an LSTM with attention, and a Transformer decoder on top of an LSTM
encoder. They learn from files 1 to 149 of the Wall Street Journal sample. `speed` measures the
speed of each parser on an idle machine. It determines the steps of all later training runs, so that
they take equal time. `trials` trains each parser with five learning rates; the rate with the lowest
perplexity on files 160 to 179 is chosen. `seeds` trains each parser with the chosen rate and three
seeds. `grammar` reads two grammars off the same trees, compares all parsers and draws their scores.
Files 150 to 159 are parsed at the end and are not used for tuning. Recorded training runs are not
repeated. Writes `docs/results/parsers.json` and builds the page from it.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.parsers_picture import draw
from benchmarks.parsing import BEAM, PENALTY, with_interval, write_brackets, write_trees
from benchmarks.pcfg import WSJ, read_treebank
from benchmarks.report import (
    RESULTS,
    ResultPage,
    arguments,
    data_folder,
    measurements_of,
    outputs_of,
)
from benchmarks.training import last_line, read_log, train
from heedful.evaluation.significance import compare
from heedful.experiments.page import Rows, fold, markdown, table
from heedful.experiments.record import Record
from heedful.paper.parsing.pcfg import Pcfg
from heedful.search.settings import SearchOptions
from heedful.tasks.parsing.parser import Parser
from heedful.tasks.parsing.trees.linearize import delinearize
from heedful.tasks.parsing.trees.score import score_trees
from heedful.tasks.parsing.trees.tree import Tree

FIRST_UNSEEN, FIRST_DEV = "wsj_0150", "wsj_0160"
BATCH, SPEED_STEPS, TRIAL_MINUTES, MINUTES = 2048, 200, 4.0, 20.0
RATES = ("7.5e-4", "1.5e-3", "3e-3", "6e-3", "1.2e-2")
SEEDS = (1, 2, 3)
KINDS = ("speed", "trials", "seeds", "grammar")
_VALIDATIONS = 4
_COMMON = (f"train.batch_tokens={BATCH}", "train.threads=1", "train.validation_samples=0")


SYSTEMS = {
    "hybrid": "parsing-small",
    "lstm": "parsing-small-lstm",
    "transformer": "parsing-small-transformer",
}
"""The recipes of the neural parsers."""
GRAMMARS = {"parents": "PCFG with parent annotation", "plain": "PCFG"}
NAMES = {name: f"`{recipe}`" for name, recipe in SYSTEMS.items()} | GRAMMARS
"""The names of all parsers on the page."""


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
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--system", action="append", default=[], choices=[*SYSTEMS])
    options = parser.parse_args()
    parts = read_parts(data_folder())
    if options.kind == "grammar":
        compare_with_grammars(parts, options.commit)
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
    measurements = measurements_of("parsers") | {kind: part}
    commands = [f"python -m benchmarks.parsers {kind}" for kind in KINDS if kind in measurements]
    outputs = outputs_of("parsers") | {**(outputs or {})}
    PAGE.keep("parsers", measurements, commit, commands=commands, outputs=outputs)


def read_files(data: Path) -> tuple[dict[str, list[Tree]], ...]:
    """Divide the files of the sample into the parts of `SampleParts`."""
    parts: tuple[dict[str, list[Tree]], ...] = ({}, {}, {})
    for name, trees in read_treebank(data / WSJ).items():
        parts[(name >= FIRST_UNSEEN) + (name >= FIRST_DEV)][name] = trees
    return parts


def read_parts(data: Path) -> SampleParts:
    """Read the trees of the three parts."""
    files = read_files(data)
    return SampleParts(*([tree for trees in part.values() for tree in trees] for part in files))


def trainings(kind: str) -> Iterator[Training]:
    """List the training runs of a kind; `seeds` has only systems whose trials are complete."""
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
    recipe = SYSTEMS[training.system]
    train(run, recipe, files, (*training.settings, *lengths), task=("parse",))


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

    def parse(gold: list[Tree]) -> list[Tree]:
        lines, tags = [" ".join(tree.words) for tree in gold], [tree.tags for tree in gold]
        return [output.tree for output in parser.parse(lines, options, tags)]

    return {"steps": steps, "minutes": last_line(run)["seconds"] / 60, **_score(parse, parts)}


_MEASURES = {"speed": measure_speed, "trials": measure_trial, "seeds": measure_seed}


def _score(parse: Callable[[list[Tree]], list[Tree]], parts: SampleParts) -> dict[str, Any]:
    """Parse the files that selected the rate and the unseen files; also return the brackets."""
    scores: dict[str, Any] = {"trees": {}}
    for name, gold in (("dev", parts.dev), ("unseen", parts.unseen)):
        trees = parse(gold)
        scores[name] = with_interval(score_trees(gold, trees))
        scores["trees"][name] = list(map(write_brackets, trees))
    return scores


def compare_with_grammars(parts: SampleParts, commit: str) -> None:
    """Score both grammars, compare all parsers on the unseen files, and draw their scores."""
    scores = {name: _score_grammar(parts, name == "parents") for name in GRAMMARS}
    outputs = {
        f"{name}, {part}": trees
        for name, score in scores.items()
        for part, trees in score.pop("trees").items()
    }
    _keep("grammar", {"commit": commit, **scores}, commit, outputs)
    pairs = list(differences(outputs_of("parsers"), parts.unseen))
    _keep("differences", {"pairs": pairs}, commit)
    draw(score_rows(measurements_of("parsers")), RESULTS / "parsers.svg")


def _score_grammar(parts: SampleParts, parents: bool) -> dict[str, Any]:
    grammar = Pcfg(parts.train, parents=parents)
    return _score(lambda gold: [grammar.parse(tree.words).tree for tree in gold], parts)


def differences(outputs: Mapping[str, list[str]], gold: list[Tree]) -> Iterator[dict[str, Any]]:
    """Compare every pair of parsers that have outputs; neural parsers are those of one seed."""
    counts = {}
    for name in NAMES:
        seed = f", seed {SEEDS[-1]}" if name in SYSTEMS else ""
        if lines := outputs.get(f"{name}{seed}, unseen"):
            trees = [
                delinearize(line.split(), tree.words, "vinyals", tags=tree.tags)
                for line, tree in zip(lines, gold, strict=True)
            ]
            counts[name] = score_trees(gold, trees).statistics()
    for first, second in combinations(counts, 2):
        (test,) = compare([counts[first]], [counts[second]], "bootstrap")
        yield {"first": first, "second": second, **asdict(test)}


def body(record: Record) -> str:
    """Lay out the scores, their differences and the trials."""
    parts = record.measurements
    pairs = parts.get("differences", {}).get("pairs", [])
    sections = []
    if rows := score_rows(parts):
        sections += [_HEAD.format_map(rows[0]), _score_table(rows)]
        if pairs:
            sections.append(" ".join(_conclusions(rows, pairs, record.outputs)))
        sections.append(_PICTURE)
    if pairs:
        sections.append(fold("Differences between parsers", [_DIFFERENCES, _matrix(pairs)]))
    details = [" ".join([_TRAINING, *_durations(parts.get("seeds", {}))])]
    if trials := parts.get("trials"):
        head = "recipe | learning rate | steps | perplexity | F1 in training | "
        cells = "{recipe} | {rate} | {steps:,} | {perplexity:.2f} | {f1:.1f} | {mark}"
        highest = [NAMES[name] for name in SYSTEMS if chosen_rate(trials, name) == RATES[-1]]
        edge = (
            f" The rate of {' and '.join(highest)} is the highest that was tried, so a higher "
            "rate may be better."
        ) * bool(highest)
        details += [_TRIALS + edge, table(head, cells, list(_trial_rows(trials)))]
    return "\n\n".join([*sections, fold("Training and trials", [*details, _commits(parts)])])


def score_rows(parts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the parsers whose training runs are complete, with their scores on both parts."""
    seeds, grammars = parts.get("seeds", {}), parts.get("grammar", {})
    scores = {name: [seeds.get(f"{name}, seed {seed}") for seed in SEEDS] for name in SYSTEMS}
    scores |= {name: [grammars.get(name)] for name in GRAMMARS}
    return [
        {
            "system": name,
            "name": NAMES[name],
            **{part: _summarize([row[part] for row in rows]) for part in ("dev", "unseen")},
        }
        for name, rows in scores.items()
        if all(rows)
    ]


def _summarize(scores: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Compute the mean F1 over seeds, its deviation, and the margin over sentences."""
    values = [score["f1"] for score in scores]
    return {
        "f1": statistics.mean(values),
        "by_seed": values,
        "seeds": f"{statistics.stdev(values):.1f}" if len(values) > 1 else "",
        "margin": statistics.mean(map(_margin, scores)),
        "sentences": scores[0]["sentences"],
    }


def _trial_rows(trials: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for key, trial in trials.items():
        name, rate = key.split(", ")
        mark = "**chosen**" if chosen_rate(trials, name) == rate else ""
        yield trial | {"recipe": NAMES[name], "rate": rate, "mark": mark}


def _conclusions(
    rows: Sequence[dict[str, Any]],
    pairs: Sequence[Mapping[str, Any]],
    outputs: Mapping[str, Sequence[str]],
) -> Iterator[str]:
    """State the seed of the differences, and the differences between neighbors in the table."""
    other_seeds = SEEDS[:-1]
    without_trees = [
        row
        for row in rows
        if row["system"] in SYSTEMS
        and not all(f"{row['system']}, seed {seed}, unseen" in outputs for seed in other_seeds)
    ]
    names = " and ".join(row["name"] for row in without_trees)
    reason = f", because the record has no trees of {names} with other seeds" if names else ""
    yield f"Differences and their 95% intervals are those of seed {SEEDS[-1]}{reason}."
    for row in without_trees:
        scores = row["unseen"]["by_seed"]
        place = ("lowest", "middle", "highest")[sorted(scores).index(scores[-1])]
        listed = ", ".join(f"{score:.1f}" for score in scores)
        seeds = f"seeds {SEEDS[0]} to {SEEDS[-1]}: {listed}"
        yield f"{row['name']} has its {place} unseen F1 with this seed ({seeds})."
    compared = {(pair["first"], pair["second"]): pair for pair in pairs}
    for first, second in [*pairwise(rows)][: len(SYSTEMS)]:
        if pair := compared.get((first["system"], second["system"])):
            # rounded as in the table, so that readers can subtract its means
            means = round(first["unseen"]["f1"], 1) - round(second["unseen"]["f1"], 1)
            low, high = pair["interval"]
            doubt = (
                ", so the unseen sentences do not show which is better" if low <= 0 <= high else ""
            )
            yield (
                f"{first['name']} minus {second['name']} is {pair['difference']:+.1f} "
                f"({low:+.1f} to {high:+.1f}) with seed {SEEDS[-1]}, and {means:+.1f} between the "
                f"means{doubt}."
            )


def _score_table(rows: Sequence[dict[str, Any]]) -> str:
    heads = "parser | development F1 | ± seeds | unseen F1 | ± seeds"
    cells = " | ".join(
        f"{{{part}[f1]:.1f}} ± {{{part}[margin]:.1f}} | {{{part}[seeds]}}"
        for part in ("dev", "unseen")
    )
    return table(heads, f"{{name}} | {cells}", rows)


def _matrix(pairs: Sequence[Mapping[str, Any]]) -> str:
    """Lay the differences out as the upper half of a matrix: the row's F1 minus the column's."""
    cells = {
        (pair["first"], pair["second"]): f"{pair['difference']:+.1f} ± {_margin(pair):.1f}"
        for pair in pairs
    }
    compared = {pair[side] for pair in pairs for side in ("first", "second")}
    systems = [name for name in NAMES if name in compared]
    rows: Rows = [("", *(str(number) for number in range(2, len(systems) + 1)))]
    for number, first in enumerate(systems, start=1):
        columns = (cells.get((first, second), "") for second in systems[1:])
        rows.append((f"{number} {NAMES[first]}", *columns))
    return markdown(rows)


def _margin(score: Mapping[str, Any]) -> float:
    """Return half the width of a 95% interval."""
    low, high = score["interval"]
    return float(high - low) / 2


def _durations(seeds: Mapping[str, Any]) -> list[str]:
    """State how long the recorded training runs took; empty without training runs."""
    minutes = [row["minutes"] for row in seeds.values()]
    if not minutes:
        return []
    times = f"{min(minutes):.0f} to {max(minutes):.0f} minutes"
    return [f"The recorded training runs took {times}, while other programs were running."]


def _commits(parts: Mapping[str, Any]) -> str:
    """Name the commits of each kind of measurement."""
    rows = {kind: parts[kind].values() for kind in KINDS[:3] if kind in parts}
    if "grammar" in parts:
        rows["grammar"] = [parts["grammar"]]
    named = (
        f"{kind} {' and '.join(dict.fromkeys(row['commit'] for row in measured))}"
        for kind, measured in rows.items()
    )
    return f"Commits: {'; '.join(named)}."


_HEAD = (
    "The table compares three neural parsers and two grammars by [labeled "
    "F1](../explain/parsing.md#the-score) on the Wall Street Journal sample, parsed from words "
    "alone. `parsing-small` has an LSTM encoder and a Transformer decoder. All parsers learn from "
    "files 1 to 149; learning rates are chosen on files 160 to 179 (development, {dev[sentences]} "
    "sentences). Files 150 to 159 (unseen, {unseen[sentences]} sentences) are parsed only at the "
    "end. F1 of a neural parser is the mean over three seeds, and “± seeds” is their standard "
    "deviation; a number after ± is half the width of a 95% interval over sentences."
)
_PICTURE = (
    "![F1 of five parsers on development and unseen sentences, with 95% intervals over "
    "sentences](parsers.svg)"
)
_DIFFERENCES = (
    f"Differences are the unseen F1 of the row minus that of the column, with seed {SEEDS[-1]}. A "
    "number after ± is half the width of a 95% interval. Intervals are bootstrapped over "
    "sentences; those of F1 are averaged over seeds."
)
_TRAINING = (
    f"Each neural parser is trained for as many steps as fit in {MINUTES:.0f} minutes on one "
    "thread. The steps are computed from speeds that were measured separately on an idle "
    f"machine. The average of the last ten checkpoints parses with beam {BEAM} and length penalty "
    f"{PENALTY}. The recipes, the beam and the penalty were chosen by scores on files 160 to 179, "
    "with [parsers](parsing.md) trained on files 1 to 159."
)
_TRIALS = (
    "Each neural parser is trained with five learning rates, each time for as many steps as fit "
    f"in {TRIAL_MINUTES:.0f} minutes. The rate with the lowest perplexity on files 160 to 179 is "
    "chosen, and replaces the rate of the recipe that a row is named after. “F1 in training” is "
    "that of greedy search and counts punctuation, unlike the F1 above."
)
PAGE = ResultPage("parsers", "Three parsers with the same tuning", {"parsers": body})


if __name__ == "__main__":
    main()
