"""
Multi30k English-German, fine-tuned by likelihood, by reward and by risk.

    python -m benchmarks.reward [--base RUN] [--runs FOLDER] [--steps N]

Trains a base run for a quarter of an hour, unless `--base` names a run. Fine-tunes it three times
with equal steps, batches and learning rate, in 35 minutes on two cores. Unfinished runs are
continued; finished runs are only measured again. Writes `docs/results/reward.json` and builds the
page from it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from benchmarks.report import ResultPage, arguments
from benchmarks.training import (
    SET,
    info,
    last_line,
    multi30k,
    multi30k_files,
    note,
    read_lines,
    read_log,
    train,
    translate,
)
from heedful.evaluation.bleu import text_metrics
from heedful.evaluation.gleu import gleu_counts
from heedful.evaluation.significance import Resampling, compare, confidence_intervals
from heedful.evaluation.sufficient_statistics import SufficientStatistics, measure
from heedful.experiments.page import table, with_names
from heedful.experiments.record import Record

# a small model, which has almost converged after a quarter of an hour
BASE = (
    "model.encoder_layers=2",
    "model.decoder_layers=2",
    "data.vocabulary_size=4000",
    "train.batch_tokens=2048",
    "train.warmup=1000",
    "train.checkpoint_steps=100",
)
COMMON = (
    "train.batch_tokens=512",
    "train.schedule=constant",
    "train.warmup=0",
    "train.learning_rate=1e-4",
    "train.validate_steps=none",
    "train.precision=fp32",
)
OBJECTIVES: dict[str, tuple[str, ...]] = {
    "likelihood": (),
    "reward": ("train.objective=reward",),
    "risk": ("train.objective=risk", "train.n_best=8"),
}
METRICS = ("bleu", "chrf", "gleu")


def main() -> None:
    """Train, fine-tune and score all models, and write the page."""
    parser = arguments(__doc__, "reward")
    parser.add_argument("--base", type=Path, help="a trained run of Multi30k English-German")
    parser.add_argument(
        "--minutes", type=float, default=15.0, help="minutes of training for the base run"
    )
    parser.add_argument("--steps", type=int, default=150, help="steps of each fine-tuning")
    parser.add_argument("--threads", type=int, default=0, help="number of threads; 0 for all cores")
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    threads, last = f"train.threads={options.threads}", ("--last", 5)
    base = options.base or options.runs / "base"
    if options.base is None:
        settings = (*BASE, f"train.minutes={options.minutes:g}", threads)
        train(base, "multi30k", multi30k_files(), settings, average=last)
    lines = {"base": _translate(base, options.runs / "base.de")}
    every = f"train.checkpoint_steps={max(1, options.steps // 5)}"
    common = (f"train.steps={options.steps}", every, threads)
    systems = {}
    for name, objective in OBJECTIVES.items():
        run, settings = options.runs / name, (*COMMON, *objective, *common)
        start = ("--finetune-from", base)
        train(run, "multi30k", multi30k_files(valid=False), settings, start, last)
        lines[name] = _translate(run, options.runs / f"{name}.de")
        systems[name] = {"settings": objective, "log": describe_log(run)}
    measurements: dict[str, Any] = {"steps": options.steps, "common": COMMON, "systems": systems}
    measurements["base"] = {"log": describe_log(base), "model": describe_model(base)}
    add_scores(measurements, lines, read_lines(multi30k(SET, "de")))
    PAGE.keep("reward", measurements, options.commit, outputs=lines)


def _translate(run: Path, output: Path) -> list[str]:
    return translate(run, output, "--precision", "fp32")


def describe_model(run: Path) -> str:
    """Describe the size of a model."""
    settings = json.loads((run / "config.json").read_text("utf-8"))["settings"]["model"]
    layers = f"{settings['encoder_layers']} + {settings['decoder_layers']} layers"
    return f"{layers} and {info(run)['parameters'] / 1e6:.1f} million weights"


def describe_log(run: Path) -> dict[str, Any]:
    """Read the length of a training run and its rewards or risks from the log."""
    last = last_line(run)
    return {
        "steps": last["step"],
        "minutes": last["seconds"] / 60,
        "target_tokens": last["target_tokens"],
        "figures": [
            [line["step"], line[name]]
            for line in read_log(run)
            for name in ("reward", "risk")
            if name in line and "target_tokens" in line
        ],
    }


@dataclass(frozen=True)
class GleuStatistics(SufficientStatistics):
    """Counts per line of matching n-grams, and of n-grams in the longer text, for GLEU."""

    def scores(self, sums: np.ndarray) -> np.ndarray:
        return 100.0 * (sums[:, 0] / np.maximum(sums[:, 1], 1))


def statistics(lines: Sequence[str], references: Sequence[str]) -> list[SufficientStatistics]:
    """Collect the statistics of each line for BLEU, chrF and GLEU."""
    metrics = text_metrics([references], language="de")
    cut = BLEU().tokenizer
    counts = [
        gleu_counts(cut(line.rstrip()).split(), cut(reference.rstrip()).split())
        for line, reference in zip(lines, references, strict=True)
    ]
    gleu = GleuStatistics(metrics["bleu"], np.array(counts, dtype=np.float64))
    return [measure(metrics["bleu"], lines), measure(metrics["chrf"], lines), gleu]


def add_scores(
    measurements: dict[str, Any], lines: dict[str, list[str]], references: list[str]
) -> None:
    """Add scores, and differences from the base and from the control, with their intervals."""
    counted = {name: statistics(output, references) for name, output in lines.items()}
    intervals = confidence_intervals(counted["base"], Resampling())
    measurements["base"]["scores"] = {
        metric: {"score": counts.score, "interval": interval}
        for metric, counts, interval in zip(METRICS, counted["base"], intervals, strict=True)
    }
    for name, system in measurements["systems"].items():
        system["scores"] = {m: c.score for m, c in zip(METRICS, counted[name], strict=True)}
        system["words"] = sum(len(line.split()) for line in lines[name])
        for control in ("base", "likelihood"):
            tests = compare(counted[name], counted[control])
            system[f"against_{control}"] = {
                metric: {"difference": t.difference, "interval": t.interval, "p": t.p_value}
                for metric, t in zip(METRICS, tests, strict=True)
            }


def body(record: Record) -> str:
    """Format the scores as Markdown."""
    measured = record.measurements
    base, systems = measured["base"], measured["systems"]
    rows = [
        {"name": "base", "minutes": "", "scores": {m: _score(s) for m, s in base["scores"].items()}}
    ]
    for row in with_names(systems):
        scores = {metric: f"{score:.2f}" for metric, score in row["scores"].items()}
        rows.append(row | {"scores": scores, "minutes": f"{row['log']['minutes']:.1f}"})
    reached = table(
        f"{_HEADS} | minutes",
        "{name} | {scores[bleu]} | {scores[chrf]} | {scores[gleu]} | {minutes}",
        rows,
    )
    tuned = {name: system for name, system in systems.items() if name != "likelihood"}
    return (
        f"The base run is `multi30k` with {base['model']}, trained for {base['log']['steps']:,} "
        f"steps in {base['log']['minutes']:.0f} minutes. This run is fine-tuned three times for "
        f"{measured['steps']:,} steps of 512 tokens, with `{' '.join(measured['common'][1:4])}`. "
        "The objectives are likelihood (the control), the expected GLEU of 15 samples (reward), "
        "and the expected 1 - GLEU of a beam's 8 best hypotheses (risk). Scores are cased, on "
        f"{SET}, with beam 4 and the average of each run's last five checkpoints. Intervals (95%) "
        "come from a paired bootstrap over sentences; they do not cover other "
        f"seeds.\n\n{reached}\n\nChange from the base:\n\n{_changes(systems, 'base')}\n\nChange "
        f"from the control, likelihood:\n\n{_changes(tuned, 'likelihood')}\n\nFrom the first to "
        "the last quarter of the training, the mean reward and the mean risk on the training "
        "text changed: "
        f"{', '.join(_course(name, systems[name]) for name in tuned)}.{note(record)}\n\nAnother "
        "page explains [how reward and risk are computed](../explain/reward.md)."
    )


_HEADS = " | BLEU | chrF | GLEU"


def _score(score: dict[str, Any]) -> str:
    return "{score:.2f} ({interval[0]:.1f} to {interval[1]:.1f})".format_map(score)


def change(test: dict[str, Any]) -> str:
    """Format a difference with its interval."""
    return "{difference:+.2f} ({interval[0]:+.2f} to {interval[1]:+.2f})".format_map(test)


def _changes(systems: dict[str, Any], control: str) -> str:
    """Lay out differences with their intervals."""
    rows = [
        {"name": name, **{m: change(test) for m, test in system[f"against_{control}"].items()}}
        for name, system in systems.items()
    ]
    return table(_HEADS, "{name} | {bleu} | {chrf} | {gleu}", rows)


def _course(name: str, system: dict[str, Any]) -> str:
    """Describe how the mean reward or risk changes on the training text."""
    values = [value for _, value in system["log"]["figures"]]
    quarter = max(1, len(values) // 4)
    first, last = (float(np.mean(part)) for part in (values[:quarter], values[-quarter:]))
    return f"{name} from {first:.3f} to {last:.3f}"


PAGE = ResultPage("reward", "Fine-tuning by reward and by risk", {"reward": body})


if __name__ == "__main__":
    main()
