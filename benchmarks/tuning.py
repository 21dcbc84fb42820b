"""
Trials for Table 2's systems: approaches that make them learn to attend, and learning rates.

    python -m benchmarks.tuning approaches | rates [--system NAME ...] [--minutes M]

`approaches` trains Deep-Att, GNMT and MoE in several ways; `rates` trains each system with each of
four learning rates. Numbers of steps follow from the speeds in Table 2's record, so that all trials
take the same time. Test sets are not read. Each trial is added to `docs/results/tuning.json` when
it ends, and the page is written from this record. Recorded trials are not repeated.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.corpora import VOCABULARY
from benchmarks.report import ResultPage, arguments, measurements_of
from benchmarks.training import multi30k_files, read_log, train
from heedful.config.load import load_config
from heedful.experiments.page import table
from heedful.experiments.record import Record
from heedful.paper.table2 import COMMON, RECIPE, SYSTEMS
from heedful.training.health.attention_use import AttentionUse
from heedful.training.health.registry import KEY

RATES = ("7.5e-4", "1.5e-3", "3e-3", "6e-3")
_GUIDED, _WITHOUT = ("train.guided_attention=1",), ("train.guided_attention=0",)
# The published architectures with fewer layers; GNMT's residual connections need three layers.
_SHALLOW = {
    "gnmt": ("model.encoder_layers=3", "model.decoder_layers=3"),
    "moe": ("model.encoder_layers=2", "model.decoder_layers=1"),
}
_FEWER_LAYERS = "fewer layers"
APPROACHES: dict[str, dict[str, tuple[str, ...]]] = {
    system: {
        "guided attention": _GUIDED,
        "without": _WITHOUT,
        _FEWER_LAYERS: (*_WITHOUT, *shallow),
        f"{_FEWER_LAYERS}, guided": (*_GUIDED, *shallow),
        "half the rate": (*_WITHOUT, "train.learning_rate=1.5e-3"),
    }
    for system, shallow in _SHALLOW.items()
}
APPROACHES["deep-att"] = {"guided attention": _GUIDED, "without": _WITHOUT}
_ATTENTION = AttentionUse()
_VALIDATIONS = 4


class Trial(NamedTuple):
    """One short training."""

    kind: str
    """`approaches` or `rates`."""
    system: str
    choice: str
    settings: tuple[str, ...]

    @property
    def key(self) -> str:
        """The trial's key in the record."""
        return f"{self.kind}, {self.system}, {self.choice}"


def main() -> None:
    """Run the trials that the record lacks, one after the other."""
    parser = arguments(__doc__, "tuning")
    parser.add_argument("kind", choices=("approaches", "rates"))
    parser.add_argument("--system", action="append", default=[])
    parser.add_argument("--minutes", type=float, default=5.0)
    options = parser.parse_args()
    for trial in trials(options.kind):
        known = measurements_of("tuning").get("trials", {})
        if trial.key in known or (options.system and trial.system not in options.system):
            continue
        print(trial.key, flush=True)
        measurement = measure(trial, options.minutes, options.runs) | {"commit": options.commit}
        PAGE.keep("tuning", {"trials": known | {trial.key: measurement}}, options.commit)


def trials(kind: str) -> Iterator[Trial]:
    """List the trials of a kind."""
    for system in SYSTEMS:
        if system.after:
            continue
        choices = {rate: (f"train.learning_rate={rate}",) for rate in RATES}
        if kind == "approaches":
            choices = APPROACHES.get(system.name, {})
        for choice, settings in choices.items():
            yield Trial(kind, system.name, choice, (*COMMON, *system.settings, *settings))


def measure(trial: Trial, minutes: float, runs: Path) -> dict[str, Any]:
    """Train a model, and read the scores of its validations."""
    steps = steps_in(trial.system, 60 * minutes)
    run = runs / trial.key.replace(", ", "-").replace(" ", "-")
    lengths = [
        f"train.steps={steps}",
        f"train.warmup={max(1, steps // 8)}",
        f"train.validate_steps={-(-steps // _VALIDATIONS)}",
        "train.minutes=none",
        f"data.vocabulary_size={VOCABULARY}",
        "train.validation_samples=0",
        "train.threads=1",
    ]
    if load_config(RECIPE, trial.settings).train.guided_attention:
        lengths.append(f"train.guided_steps={steps // 2}")
    train(run, RECIPE, multi30k_files(), [*trial.settings, *lengths])
    validations = [line for line in read_log(run) if "valid_loss" in line]
    best = min(validations, key=lambda line: line["valid_loss"])
    attention = best.get(KEY, {}).get("attention")
    return {
        "system": trial.system,
        "kind": trial.kind,
        "choice": trial.choice,
        "steps": steps,
        "minutes": minutes,
        "perplexity": best["valid_perplexity"],
        "bleu": best["bleu"],
        "attention": attention,
        "attends": attention is None or _ATTENTION.warning(attention) is None,
    }


def steps_in(name: str, seconds: float) -> int:
    """Compute the steps of a system in some seconds, from its recorded rate."""
    plan = measurements_of("table2")["plan"]["systems"]
    (system,) = (system for system in plan if system["name"] == name)
    return max(_VALIDATIONS, int(seconds * system["tokens_per_second"] / system["batch_tokens"]))


def chosen(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Choose a trial: it must attend, then have full depth, then have the lowest perplexity."""

    def rank(row: dict[str, Any]) -> tuple[bool, bool, float]:
        return not row["attends"], row["choice"].startswith(_FEWER_LAYERS), row["perplexity"]

    return min(rows, key=rank)


def body(record: Record) -> str:
    """Lay out all trials, and mark the chosen trials."""
    rows = list(record.measurements["trials"].values())
    parts = []
    for kind, head in (("approaches", "approach"), ("rates", "learning rate")):
        matching = [row for row in rows if row["kind"] == kind]
        complete = [name for name in _names(matching) if not missing(record, kind, name)]
        best = [chosen([row for row in matching if row["system"] == name]) for name in complete]
        cells = [
            row
            | {"mark": "**chosen**" if row in best else ""}
            | {"first": _figure(row, "first", ".0%"), "diagonal": _figure(row, "diagonal")}
            | {"nats": _figure(row, "nats_of_uniform")}
            for row in matching
        ]
        if cells:
            parts.append(
                table(
                    f"system | {head} | steps | perplexity | BLEU | largest weight on the first "
                    "position | correlation with the diagonal | nats lost by uniform attention | ",
                    "{system} | {choice} | {steps:,} | {perplexity:.1f} | {bleu:.1f} | {first} | "
                    "{diagonal} | {nats} | {mark}",
                    cells,
                )
            )
    names = dict.fromkeys(trial.system for trial in trials("rates"))
    if left := [name for name in names if missing(record, "rates", name)]:
        parts.append(f"Not all rates were tried for {', '.join(left)}.")
    return _HEAD + "\n\n".join(parts)


def missing(record: Record, kind: str, system: str) -> list[str]:
    """List the trials of a system, of one kind, that are not in the record."""
    keys = [trial.key for trial in trials(kind) if trial.system == system]
    return [key for key in keys if key not in record.measurements["trials"]]


def _names(rows: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["system"] for row in rows))


def _figure(row: dict[str, Any], name: str, form: str = ".2f") -> str:
    return "" if row["attention"] is None else format(row["attention"].get(name, 0.0), form)


_HEAD = (
    "Short trainings on Multi30k English-German compare ways to train the systems of [Table "
    "2](tables.md). The number of steps follows from the speed of a system with all layers, so "
    "that the trials of all systems take the same time on one thread. Perplexity and greedy BLEU "
    "are measured on the validation text. The chosen trial of a system has the lowest perplexity "
    "among the trials that [use their attention](../howto/training-health.md), or among all "
    "trials if none does. A trial with fewer layers is chosen only if no trial with all layers "
    "uses its attention.\n\n"
)
PAGE = ResultPage("tuning", "Trials for the systems of Table 2", {"tuning": body})


if __name__ == "__main__":
    main()
