"""
Multi30k English-German, fine-tuned by likelihood, by reward and by risk.

    python -m benchmarks.reward [--base RUN] [--runs FOLDER] [--steps N]

Trains a base run for a quarter of an hour, unless one is given, then fine-tunes it three times
with equal steps, batches and learning rate: 35 minutes on two cores. What is there is continued or
only measured again. Writes `docs/results/reward.json`, and the page from it.
"""

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from benchmarks.figures import rewrite
from benchmarks.report import ROOT, commit, heedful, keep
from benchmarks.small import SET, lines_of
from heedful.evaluation.bleu import text_metrics
from heedful.evaluation.gleu import GleuCounts, gleu_counts
from heedful.evaluation.significance import Resampling, compare, confidence_intervals
from heedful.evaluation.sufficient_statistics import SufficientStatistics, measure

# small, to be near its end after a quarter of an hour
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
    """Train, fine-tune, score and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, help="a trained run of Multi30k English-German")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "reward")
    parser.add_argument("--minutes", type=float, default=15.0, help="for the base run")
    parser.add_argument("--steps", type=int, default=150, help="of each fine-tuning")
    parser.add_argument("--threads", type=int, default=0, help="0 for all")
    options = parser.parse_args()
    measured = commit()
    raw = Path(os.environ.get("HEEDFUL_DATA", "../shared/data")) / "multi30k" / "raw"
    options.runs.mkdir(parents=True, exist_ok=True)
    base, threads = options.base, f"train.threads={options.threads}"
    if base is None:
        base = options.runs / "base"
        until = (*BASE, f"train.minutes={options.minutes:g}", threads)
        train(raw, base, "multi30k", until, validate=True)
    found: dict[str, Any] = {"steps": options.steps, "common": COMMON, "systems": {}}
    lines = {"base": translate(raw, base, options.runs / "base.de")}
    found["base"] = {"log": described(base), "model": shape(base)}
    for name, settings in OBJECTIVES.items():
        run = options.runs / name
        every = f"train.checkpoint_steps={max(1, options.steps // 5)}"
        chosen = (*COMMON, *settings, f"train.steps={options.steps}", every, threads)
        train(raw, run, "multi30k", chosen, ("--finetune-from", base))
        lines[name] = translate(raw, run, options.runs / f"{name}.de")
        found["systems"][name] = {"settings": settings, "log": described(run)}
    scored(found, lines, lines_of(raw / f"{SET}.de.gz"))
    keep("reward", found, measured)
    rewrite()
    print(body(found))


def train(
    raw: Path,
    run: Path,
    recipe: str,
    settings: Sequence[str],
    more: Sequence[object] = (),
    validate: bool = False,
) -> None:
    """Train, or finish a training, and average the last five checkpoints."""
    if (run / "average").exists():
        return
    files = ["--source", raw / "train.en.gz", "--target", raw / "train.de.gz"]
    if validate:
        files += ["--valid-source", raw / "val.en.gz", "--valid-target", raw / "val.de.gz"]
    chosen = [part for one in settings for part in ("--set", one)]
    resume = ("--resume",) if run.exists() else ()
    heedful("train", recipe, *files, "--out", run, *chosen, *more, *resume)
    heedful("average", run, "--last", 5)


def translate(raw: Path, run: Path, output: Path) -> list[str]:
    """Translate the test set with the recipe's beam."""
    source = raw / f"{SET}.en.gz"
    heedful("translate", run, "--input", source, "--output", output, "--precision", "fp32")
    return output.read_text("utf-8").splitlines()


def shape(run: Path) -> str:
    """Describe the size of a model."""
    settings = json.loads((run / "config.json").read_text("utf-8"))["settings"]["model"]
    layers = f"{settings['encoder_layers']} and {settings['decoder_layers']} layers"
    parameters = json.loads(heedful("info", run, "--json").stdout)["parameters"]
    return f"{layers}, {parameters / 1e6:.1f} million weights"


def described(run: Path) -> dict[str, Any]:
    """Read what the log says of a training: its length, and its rewards or risks."""
    log = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]
    lines = [line for line in log if "target_tokens" in line]
    return {
        "steps": lines[-1]["step"],
        "minutes": lines[-1]["seconds"] / 60,
        "target_tokens": lines[-1]["target_tokens"],
        "figures": [
            [line["step"], line[name]]
            for line in lines
            for name in ("reward", "risk")
            if name in line
        ],
    }


@dataclass(frozen=True)
class GleuStatistics(SufficientStatistics):
    """N-grams of each line, shared and of the longer text; GLEU of any selection of lines."""

    def scores(self, sums: np.ndarray) -> np.ndarray:
        return np.array([100.0 * GleuCounts(*row).gleu for row in sums.tolist()])


def statistics(lines: Sequence[str], references: Sequence[str]) -> list[SufficientStatistics]:
    """Count what BLEU, chrF and GLEU need of each line."""
    metrics = text_metrics([references], language="de")
    cut = BLEU().tokenizer
    counts = [
        gleu_counts(cut(line.rstrip()).split(), cut(reference.rstrip()).split())
        for line, reference in zip(lines, references, strict=True)
    ]
    gleu = GleuStatistics(metrics["bleu"], np.array(counts, dtype=np.float64))
    return [measure(metrics["bleu"], lines), measure(metrics["chrf"], lines), gleu]


def scored(found: dict[str, Any], lines: dict[str, list[str]], references: list[str]) -> None:
    """Add scores, and differences from the base and from the control, with their intervals."""
    counted = {name: statistics(some, references) for name, some in lines.items()}
    intervals = confidence_intervals(counted["base"], Resampling())
    found["base"]["scores"] = {
        metric: {"score": one.score, "interval": interval}
        for metric, one, interval in zip(METRICS, counted["base"], intervals, strict=True)
    }
    for name, system in found["systems"].items():
        system["scores"] = {m: c.score for m, c in zip(METRICS, counted[name], strict=True)}
        system["words"] = sum(len(line.split()) for line in lines[name])
        for other in ("base", "likelihood"):
            tests = compare(counted[name], counted[other])
            system[f"against_{other}"] = {
                metric: {"difference": t.difference, "interval": t.interval, "p": t.p_value}
                for metric, t in zip(METRICS, tests, strict=True)
            }


def body(found: dict[str, Any]) -> str:
    """Lay the scores out."""
    base, systems = found["base"], found["systems"]
    log = base["log"]
    first = " | ".join(
        f"{one['score']:.2f} ({one['interval'][0]:.1f} to {one['interval'][1]:.1f})"
        for one in base["scores"].values()
    )
    rows = "\n".join(
        f"| {name} | {' | '.join(f'{score:.2f}' for score in one['scores'].values())} "
        f"| {one['log']['minutes']:.1f} |"
        for name, one in systems.items()
    )
    return (
        f"A base run (`multi30k` with {base['model']}, {log['steps']:,} steps in "
        f"{log['minutes']:.0f} minutes) is fine-tuned three times for {found['steps']:,} steps of "
        f"512 tokens, with `{' '.join(found['common'][1:4])}`: by likelihood, the control; by the "
        "expected GLEU of 15 samples; by risk, 1 - GLEU, over the 8 best of a beam. Scores of "
        f"{SET}, cased, beam 4, the average of each run's last five checkpoints. Differences have "
        "95 % intervals of the paired bootstrap over sentences: they say what another test set "
        "would change, not another seed. Steps are equal, minutes are not, and the base is not at "
        "its end: how much the same minutes of the usual training would gain was not measured.\n\n"
        "| | BLEU | chrF | GLEU | minutes |\n| --- | --- | --- | --- | --- |\n"
        f"| base | {first} | |\n{rows}\n\n"
        "Change from the base:\n\n" + _changes(systems, "base") + "\n\n"
        "Change from the control, which has seen as many references:\n\n"
        + _changes({n: s for n, s in systems.items() if n != "likelihood"}, "likelihood")
        + f"\n\n{_course(systems)}\n\n{found.get('note', '')}".rstrip()
        + "\n\n```sh\npython -m benchmarks.reward\n```\n\n[What is computed](../explain/reward.md)."
    )


def _changes(systems: dict[str, Any], other: str) -> str:
    """Lay differences out, with intervals."""
    rows = "\n".join(
        f"| {name} | "
        + " | ".join(
            f"{one['difference']:+.2f} ({one['interval'][0]:+.2f} to {one['interval'][1]:+.2f})"
            for one in system[f"against_{other}"].values()
        )
        + " |"
        for name, system in systems.items()
    )
    return f"| | BLEU | chrF | GLEU |\n| --- | --- | --- | --- |\n{rows}"


def _course(systems: dict[str, Any]) -> str:
    """Say how reward and risk moved on the training text."""
    parts = []
    for name in ("reward", "risk"):
        figures = systems[name]["log"]["figures"]
        quarter = max(1, len(figures) // 4)
        first, last = (
            sum(value for _, value in some) / len(some)
            for some in (figures[:quarter], figures[-quarter:])
        )
        parts.append(f"the mean {name} from {first:.3f} to {last:.3f}")
    return (
        "On the training text, between the first and the last quarter of the lines of the log, "
        f"{' and '.join(parts)}."
    )


if __name__ == "__main__":
    main()
