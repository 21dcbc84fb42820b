"""
Four toolkits, the same raw text, one hour each at the speeds of one machine.

    python -m benchmarks.same_hour environment --system X
    python -m benchmarks.same_hour speeds [--minutes M] [--results FOLDER]
    python -m benchmarks.same_hour trials --system X [--minutes M] [--results FOLDER]
    python -m benchmarks.same_hour train --system X [--minutes M] [--results FOLDER]

`environment` installs a toolkit in `build/same-hour`. `speeds` needs an idle machine. It first
measures four combinations of precision and threads; a toolkit uses its fastest combination from
then on. Then it measures the steps per second of both trials. In each round, the toolkits take
turns, so that all of them meet the same machine. From these speeds follow the numbers of steps in
some minutes; the training runs themselves may therefore run at other times or on other machines.

`trials` trains twice for six minutes. `train` takes the settings of the trial with the better BLEU
on the validation text, and trains for an hour, without validations. Then the checkpoints of every
fifth minute and the average of the last ten checkpoints translate the validation text; the best of
them translates the test set once. Each result is stored at once in `docs/results/same-hour.json`,
and a stored measurement is not repeated. With another number of minutes, as in a rehearsal,
`--results` must name another folder for the record.

Each toolkit has a driver in `benchmarks/peers/same_hour`, which runs in the toolkit's environment.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import report
from benchmarks.report import ROOT, arguments, machine, measurements_of, outputs_of
from benchmarks.same_hour_page import PAGE, draw
from benchmarks.training import SET, multi30k, read_lines

NAME = "same-hour"
DRIVERS = ROOT / "benchmarks" / "peers" / "same_hour"
ENVIRONMENTS = ROOT / "build" / NAME
SEED, BEAM, AVERAGED, CURVE_POINTS = 1, 5, 10, 12
TRIAL_MINUTES, MINUTES = 6.0, 60.0
SPEED_MINUTES, SPEED_ROUNDS = 0.5, 2
"""Minutes of a measurement of speed, and the number of measurements of each trial's speed."""
SPEED_STEPS = 10_000
"""Number of steps in the schedules of these measurements, more than any of them takes."""
WAYS = [(precision, threads) for precision in ("fp32", "bf16") for threads in (1, 2)]
SIZE = {"layers": 4, "heads": 4, "width": 128, "inner": 256}
"""The size of each model: layers on each side, heads, width, inner width."""
LIKE_SIZE = 0.2
"""Largest relative difference from heedful's number of parameters without embeddings."""


class ToolkitTrials(NamedTuple):
    """The trials of a toolkit."""

    requirements: Path | None
    """The packages of its environment; None for this checkout's environment."""
    trials: dict[str, dict[str, Any]]
    """Settings by name; `warmup` is a share of the steps."""


_HEEDFUL = {"train.learning_rate": 5e-3, "train.batch_tokens": 4096, "model.dropout": 0.3}
_JOEY = {"batch": 4096, "dropout": 0.3, "beta2": 0.98, "norm": "post"}
_EOLE = {"batch": 4096, "dropout": 0.3}
_TRANSFORMERS = {"batch": 256, "dropout": 0.3, "clip": 1.0}
SYSTEMS = {
    "heedful": ToolkitTrials(
        None,
        {
            "recipe multi30k": _HEEDFUL
            | {"warmup": 0.22, "train.schedule": "inverse_sqrt", "data.vocabulary_size": 8000},
            "cosine": _HEEDFUL
            | {"warmup": 0.055, "train.schedule": "cosine", "data.vocabulary_size": 4000},
        },
    ),
    "joey": ToolkitTrials(
        DRIVERS.parent / "joey" / "requirements.txt",
        {
            "transformer_small.yaml, subwords of iwslt14_deen_sp.yaml": _JOEY
            | {"warmup": 0.1, "schedule": "noam", "rate": 2e-3}
            | {"vocabulary": 8000, "subwords": "unigram", "sampling": 0.1},
            "rate of the recipe multi30k": _JOEY
            | {"warmup": 0.1, "schedule": "warmupinversesquareroot", "rate": 5e-3}
            | {"vocabulary": 4000, "subwords": "bpe", "sampling": 0.0},
        },
    ),
    "eole": ToolkitTrials(
        DRIVERS / "eole.txt",
        {
            "wmt17_ende_spm.yaml": _EOLE
            | {"warmup": 0.1, "schedule": "noam", "rate": 2.8e-3}
            | {"vocabulary": 8000, "beta2": 0.998},
            "rate of the recipe multi30k, cosine": _EOLE
            | {"warmup": 0.055, "schedule": "cosine", "rate": 5e-3}
            | {"vocabulary": 4000, "beta2": 0.98},
        },
    ),
    "transformers": ToolkitTrials(
        DRIVERS / "transformers.txt",
        {
            "schedule, optimizer and activation by default": _TRANSFORMERS
            | {"warmup": 0.1, "schedule": "linear", "rate": 2e-3}
            | {"vocabulary": 8000, "beta2": 0.999, "activation": "gelu"},
            "rate of the recipe multi30k, cosine": _TRANSFORMERS
            | {"warmup": 0.055, "schedule": "cosine", "rate": 5e-3}
            | {"vocabulary": 4000, "beta2": 0.98, "activation": "relu"},
        },
    ),
}


def main() -> None:
    """Install a toolkit, or take its measurements that the record lacks."""
    parser = arguments(__doc__, NAME)
    parser.add_argument("kind", choices=("environment", "speeds", "trials", "train"))
    parser.add_argument("--system", choices=[*SYSTEMS])
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--results", type=Path, default=report.RESULTS)
    options = parser.parse_args()
    if options.minutes is not None and options.results == report.RESULTS:
        parser.error(
            "--minutes makes a rehearsal, whose record must not be in docs/results: "
            "name another folder with --results"
        )
    if (options.system is None) != (options.kind == "speeds"):
        parser.error("--system must be given, except for speeds, which are measured of all systems")
    if options.kind == "environment":
        build_environment(options.system)
        return
    report.RESULTS = options.results
    if options.kind == "speeds":
        toolkits = [ToolkitDriver(name, options.runs.resolve() / name) for name in SYSTEMS]
        measure_speeds(toolkits, options.minutes or SPEED_MINUTES, options.commit)
        return
    toolkit = ToolkitDriver(options.system, options.runs.resolve() / options.system)
    if options.kind == "trials":
        run_trials(toolkit, options.minutes or TRIAL_MINUTES, options.commit)
    else:
        run_hour(toolkit, options.minutes or MINUTES, options.commit)


def build_environment(system: str) -> None:
    """Install a toolkit in its own environment, unless it is already installed."""
    requirements, place = SYSTEMS[system].requirements, ENVIRONMENTS / system
    installed = place / ".installed"
    if requirements is None or installed.exists():
        return
    subprocess.run([sys.executable, "-m", "venv", place / ".venv"], check=True)
    install = ("-m", "pip", "install", "--quiet", "--requirement", requirements)
    subprocess.run([_python(system), *install], check=True)
    installed.touch()


def _python(system: str) -> Path:
    """Return the interpreter of a toolkit."""
    if SYSTEMS[system].requirements is None:
        return Path(sys.executable)
    return ENVIRONMENTS / system / ".venv" / "bin" / "python"


class ToolkitDriver:
    """A toolkit that is run through its driver, in a folder with the texts."""

    def __init__(self, system: str, folder: Path) -> None:
        self.system = system
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for part, name in (("train", "train"), ("valid", "val"), ("test", SET)):
            for language in ("en", "de"):
                if (part, language) != ("test", "de"):
                    lines = "".join(f"{line}\n" for line in read_lines(multi30k(name, language)))
                    (folder / f"{part}.{language}").write_text(lines, "utf-8")

    def ask(self, task: str, threads: int, **request: Any) -> dict[str, Any]:
        """Run the driver for a task."""
        if not _python(self.system).exists():
            raise SystemExit(
                f"{self.system} is not installed: run "
                f"`python -m benchmarks.same_hour environment --system {self.system}` first"
            )
        question, answer = self.folder / "request.json", self.folder / "answer.json"
        answer.unlink(missing_ok=True)
        question.write_text(json.dumps({"task": task, "threads": threads} | request), "utf-8")
        log = self.folder / "log.txt"
        with log.open("a", encoding="utf-8") as stream:
            done = subprocess.run(
                [_python(self.system), DRIVERS / f"with_{self.system}.py", question, answer],
                check=False,
                cwd=self.folder,
                env=os.environ | {"OMP_NUM_THREADS": str(threads), "CUDA_VISIBLE_DEVICES": ""},
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
        if done.returncode:
            raise SystemExit(
                f"the driver of {self.system} must end with 0, but ended with {done.returncode}: "
                f"read the end of {log}"
            )
        return dict(json.loads(answer.read_text("utf-8")))

    def train(
        self,
        name: str,
        trial: str,
        way: tuple[str, int],
        minutes: float,
        rate: float | None,
    ) -> dict[str, Any]:
        """
        Train from the beginning for some minutes.

        `rate`: the steps per second from which the number of steps is computed; the minutes are
        measured, and no checkpoint is saved, if None.
        """
        steps = SPEED_STEPS if rate is None else expected_steps(rate, minutes)
        shutil.rmtree(self.folder / name, ignore_errors=True)
        settings = dict(SYSTEMS[self.system].trials[trial])
        share = settings.pop("warmup")
        answer = self.ask(
            "train",
            way[1],
            out=name,
            settings=settings,
            size=SIZE,
            precision=way[0],
            minutes=minutes,
            rate=rate,
            steps=steps,
            warmup=max(1, round(share * steps)),
            seed=SEED,
            beam=BEAM,
        )
        described = {"trial": trial, "precision": way[0], "threads": way[1], "size": SIZE}
        return described | answer

    def translate(
        self, name: str, trial: str, checkpoints: Sequence[str], part: str
    ) -> list[list[str]]:
        """Translate a text with each checkpoint of a training run."""
        jobs = [
            [checkpoint, f"{name}-{part}-{number}.de"]
            for number, checkpoint in enumerate(checkpoints)
        ]
        self.ask(
            "translate",
            os.cpu_count() or 1,
            out=name,
            settings=SYSTEMS[self.system].trials[trial],
            source=f"{part}.en",
            jobs=jobs,
            beam=BEAM,
        )
        return [(self.folder / output).read_text("utf-8").splitlines() for _, output in jobs]


def measure_speeds(toolkits: Sequence[ToolkitDriver], minutes: float, commit: str) -> None:
    """Measure the fastest precision and number of threads, then the speed of each trial."""
    for precision, threads in WAYS:
        for toolkit in toolkits:
            first = next(iter(SYSTEMS[toolkit.system].trials))
            key, way = f"{precision}, {threads}", (precision, threads)
            if key not in known(toolkit.system, "ways"):
                _measure_speed(toolkit, "ways", key, (first, way), minutes, commit)
    for number in range(SPEED_ROUNDS):
        for toolkit in toolkits:
            way = fastest(known(toolkit.system, "ways"))
            for trial in SYSTEMS[toolkit.system].trials:
                rounds = known(toolkit.system, "speeds").get(trial, {}).get("rounds", [])
                if len(rounds) == number:
                    _measure_speed(toolkit, "speeds", trial, (trial, way), minutes, commit)


def _measure_speed(
    toolkit: ToolkitDriver,
    kind: str,
    key: str,
    what: tuple[str, tuple[str, int]],
    minutes: float,
    commit: str,
) -> None:
    """Measure the steps per second once more; `what`: trial, and precision with threads."""
    print(toolkit.system, key, flush=True)
    rate = toolkit.train("speed", *what, minutes, None)["steps_per_second"]
    rounds = [*known(toolkit.system, kind).get(key, {}).get("rounds", []), rate]
    speed = {"rounds": rounds, "steps_per_second": sum(rounds) / len(rounds)}
    keep(toolkit.system, kind, key, speed, commit)


def run_trials(toolkit: ToolkitDriver, minutes: float, commit: str) -> None:
    """Run the trials with the fastest precision and number of threads."""
    for number, trial in enumerate(SYSTEMS[toolkit.system].trials):
        if trial not in known(toolkit.system, "trials"):
            print(trial, flush=True)
            name = f"trial-{number}"
            answer = toolkit.train(name, trial, *speed_of(toolkit.system, trial, minutes))
            paths = [row["path"] for row in answer.pop("checkpoints")][-1:]
            (lines,) = toolkit.translate(name, trial, paths, "valid")
            keep(toolkit.system, "trials", trial, answer | score(lines, "val"), commit)


def speed_of(system: str, trial: str, minutes: float) -> tuple[tuple[str, int], float, float]:
    """Return precision and threads of a training run, its minutes, and its steps per second."""
    speeds = known(system, "speeds")
    if trial not in speeds:
        raise SystemExit(
            f"the number of steps follows from measured speeds, but there is none of {system}: "
            "run `python -m benchmarks.same_hour speeds` on an idle machine first"
        )
    return fastest(known(system, "ways")), minutes, speeds[trial]["steps_per_second"]


def run_hour(toolkit: ToolkitDriver, minutes: float, commit: str) -> None:
    """Train, translate with the checkpoints, and score the best of them on the test set."""
    system, trials = toolkit.system, known(toolkit.system, "trials")
    if missing := [name for name in SYSTEMS[system].trials if name not in trials]:
        raise SystemExit(
            f"the hour needs the scores of every trial of {system}, but there is none of "
            f"{missing[0]!r}: run `python -m benchmarks.same_hour trials --system {system}` first"
        )
    if known(system, "hour"):
        return
    trial, trained = best_of(trials), toolkit.folder / "hour.json"
    if not trained.exists():
        answer = toolkit.train("hour", trial, *speed_of(system, trial, minutes))
        trained.write_text(json.dumps(answer), "utf-8")
    answer = json.loads(trained.read_text("utf-8"))
    check_size(system, answer["parameters"])
    checkpoints = answer.pop("checkpoints")
    points, last = spread(checkpoints, minutes), checkpoints[-AVERAGED:]
    paths = [row["path"] for row in last]
    averaged = "hour/average"
    toolkit.ask("average", answer["threads"], out="hour", checkpoints=paths, average=averaged)
    candidates = [*(row["path"] for row in points), averaged]
    *lines, of_average = toolkit.translate("hour", trial, candidates, "valid")
    curve = [
        {"minutes": row["minutes"], "step": row["step"]} | score(translated, "val")
        for row, translated in zip(points, lines, strict=True)
    ]
    scored = [*curve, {"averaged": len(last)} | score(of_average, "val")]
    chosen = max(range(len(scored)), key=lambda row: float(scored[row]["lower-cased"]))
    (tested,) = toolkit.translate("hour", trial, [candidates[chosen]], "test")
    answer |= {"curve": curve, "average": scored[-1], "chosen": scored[chosen]}
    keep(system, "hour", "", answer | {"test": score(tested, SET)}, commit, {system: tested})


def known(system: str, kind: str) -> dict[str, Any]:
    """Return the stored measurements of a kind."""
    stored: dict[str, Any] = measurements_of(NAME).get(system, {}).get(kind, {})
    return stored


def keep(
    system: str,
    kind: str,
    key: str,
    answer: dict[str, Any],
    commit: str,
    outputs: Mapping[str, list[str]] | None = None,
) -> None:
    """Add a measurement to the record, and write the page and the picture."""
    answer |= {"commit": commit, "machine": machine()}
    every = measurements_of(NAME)
    of_kind = answer if not key else known(system, kind) | {key: answer}
    every[system] = every.get(system, {}) | {kind: of_kind}
    report.RESULTS.mkdir(parents=True, exist_ok=True)
    PAGE.keep(NAME, every, commit, outputs=outputs_of(NAME) | {**(outputs or {})})
    draw(every, report.RESULTS / f"{NAME}.svg")


def fastest(ways: Mapping[str, Mapping[str, float]]) -> tuple[str, int]:
    """Return the fastest precision and number of threads."""
    key = max(ways, key=lambda key: ways[key]["steps_per_second"])
    precision, threads = key.split(", ")
    return precision, int(threads)


def expected_steps(rate: float, minutes: float) -> int:
    """Compute the number of steps in some minutes from the steps per second."""
    return max(1, round(60 * minutes * rate))


def best_of(trials: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the trial with the best score on the validation text."""
    return max(trials, key=lambda name: float(trials[name]["lower-cased"]))


def spread(checkpoints: Sequence[dict[str, Any]], minutes: float) -> list[dict[str, Any]]:
    """Choose the checkpoints nearest to equally spaced times."""
    times = [minutes * (number + 1) / CURVE_POINTS for number in range(CURVE_POINTS)]
    nearest = [min(checkpoints, key=lambda row: abs(row["minutes"] - time)) for time in times]
    return [row for number, row in enumerate(nearest) if row not in nearest[:number]]


def check_size(system: str, parameters: int) -> None:
    """Refuse a model whose size differs too much from heedful's."""
    ours = known("heedful", "hour").get("parameters", parameters)
    if abs(parameters / ours - 1) > LIKE_SIZE:
        raise SystemExit(
            f"models must be of like size, at most {LIKE_SIZE:.0%} apart, but that of {system} has "
            f"{parameters:,} parameters without embeddings and heedful's has {ours:,}: change its "
            "driver in benchmarks/peers/same_hour"
        )


def score(lines: Sequence[str], part: str) -> dict[str, Any]:
    """Score translations with sacreBLEU, with and without case."""
    from sacrebleu.metrics import BLEU

    scores: dict[str, Any] = {"signatures": []}
    for name, lowercase in (("lower-cased", True), ("bleu", False)):
        metric = BLEU(lowercase=lowercase)
        scores[name] = metric.corpus_score(lines, [read_lines(multi30k(part, "de"))]).score
        scores["signatures"].append(str(metric.get_signature()))
    return scores


if __name__ == "__main__":
    main()
