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
_BY_RATE: dict[str, tuple[str, ...]] = {rate: (f"train.learning_rate={rate}",) for rate in RATES}
MINUTES = 1.5
_RATE = "train.learning_rate=3e-3"  # of all approaches except half the rate
_GUIDED = (_RATE, "train.guided_attention=1")
_WITHOUT = (_RATE, "train.guided_attention=0")
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
    parser.add_argument("--minutes", type=float, default=MINUTES)
    options = parser.parse_args()
    for trial in trials(options.kind):
        known = measurements_of("tuning").get("trials", {})
        if trial.key in known or (options.system and trial.system not in options.system):
            continue
        print(trial.key, flush=True)
        measurement = measure(trial, options.minutes, options.runs) | {"commit": options.commit}
        known |= {trial.key: measurement}
        PAGE.keep("tuning", {"trials": known}, options.commit, commands=commands(known))


def trials(kind: str) -> Iterator[Trial]:
    """List the trials of a kind."""
    for system in SYSTEMS:
        if system.after:
            continue
        choices = _BY_RATE if kind == "rates" else APPROACHES.get(system.name, {})
        for choice, settings in choices.items():
            yield Trial(kind, system.name, choice, (*COMMON, *system.settings, *settings))


def measure(trial: Trial, minutes: float, runs: Path) -> dict[str, Any]:
    """Train a model, and read the scores of its validations."""
    steps = steps_in(trial.system, 60 * minutes)
    run = runs / trial.key.replace(", ", "-").replace(" ", "-")
    lengths = [
        f"train.steps={steps}",
        f"train.warmup={warmup(steps)}",
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


def commands(known: dict[str, Any]) -> list[str]:
    """List the commands that repeat all recorded trials."""
    calls = dict.fromkeys((row["kind"], row["minutes"]) for row in known.values())
    return [f"python -m benchmarks.tuning {kind} --minutes {spent:g}" for kind, spent in calls]


def steps_in(name: str, seconds: float) -> int:
    """Compute the steps of a system in some seconds, from its recorded rate."""
    system = _plan_of(name)
    return max(_VALIDATIONS, int(seconds * system["tokens_per_second"] / system["batch_tokens"]))


def _plan_of(name: str) -> dict[str, Any]:
    """Return the plan of a system in Table 2."""
    plan = measurements_of("table2")["plan"]["systems"]
    (system,) = (system for system in plan if system["name"] == name)
    return dict(system)


def warmup(steps: int) -> int:
    """Compute the warm-up of a trial."""
    return max(1, steps // 8)


def chosen(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Choose a trial: it must attend, then have full depth, then have the lowest perplexity."""

    def rank(row: dict[str, Any]) -> tuple[bool, bool, float]:
        return not row["attends"], row["choice"].startswith(_FEWER_LAYERS), row["perplexity"]

    return min(rows, key=rank)


def body(record: Record) -> str:
    """Lay out the systems and all trials, and state which rates the trials leave open."""
    trials_of = record.measurements["trials"].values()
    rows = sorted(trials_of, key=lambda row: list(_TITLES).index(row["system"]))
    best = {kind: _best(record, kind) for kind in _KINDS}
    minutes = " or ".join(f"{spent:g}" for spent in sorted({row["minutes"] for row in rows}))
    parts = [_HEAD.format(minutes=minutes), _systems(rows, best["rates"])]
    parts += [*_reservations(record, best["rates"]), _COLUMNS]
    for kind, (title, head, note) in _KINDS.items():
        cells = [
            row
            | {"title": _TITLES[row["system"]]}
            | {"name": f"**{row['choice']}**" if row in best[kind].values() else row["choice"]}
            | {"first": _figure(row, "first", ".0%"), "diagonal": _figure(row, "diagonal")}
            | {"nats": _figure(row, "nats_of_uniform")}
            for row in rows
            if row["kind"] == kind
        ]
        if cells:
            parts += [f"## {title}", note, table(head + _HEADS, _CELLS, cells)]
    commits = ", ".join(sorted({row["commit"] for row in rows}))
    return "\n\n".join([*parts, _UNRECORDED, f"Commits of the trials: {commits}."])


def _best(record: Record, kind: str) -> dict[str, dict[str, Any]]:
    """Choose the best trial of each system that has all trials of a kind."""
    rows = [row for row in record.measurements["trials"].values() if row["kind"] == kind]
    return {
        name: chosen([row for row in rows if row["system"] == name])
        for name in dict.fromkeys(row["system"] for row in rows)
        if not missing(record, kind, name)
    }


def _systems(rows: Sequence[dict[str, Any]], best: dict[str, dict[str, Any]]) -> str:
    """Lay out the steps, the warm-up and the best rate of each system."""
    cells = []
    for name in dict.fromkeys(row["system"] for row in rows):
        table2 = dict(setting.split("=", 1) for setting in _plan_of(name)["settings"])
        own = [row for row in rows if row["system"] == name]
        steps = own[0]["steps"]
        cells.append(
            {"title": _TITLES[name], "best": best[name]["choice"] if name in best else ""}
            | {"trials": len(own), "minutes": MINUTES * len(own), "steps": steps}
            | {"warmup": warmup(steps), "warmup2": table2["train.warmup"]}
            | {"rate2": table2["train.learning_rate"]}
        )
    return table(
        "system | trials | minutes | steps | warm-up | warm-up in Table 2 | best rate | "
        "rate in Table 2",
        "{title} | {trials} | {minutes:g} | {steps:,} | {warmup} | {warmup2} | {best} | {rate2}",
        cells,
    )


def _reservations(record: Record, best: dict[str, dict[str, Any]]) -> Iterator[str]:
    """State which rates the trials leave open."""
    names = dict.fromkeys(trial.system for trial in trials("rates"))
    if left := [name for name in names if missing(record, "rates", name)]:
        yield f"Not all rates were tried for {_list(left)}."
    edges = {
        word: [name for name, row in best.items() if row["choice"] == edge]
        for word, edge in (("highest", RATES[-1]), ("lowest", RATES[0]))
    }
    if count := sum(map(len, edges.values())):
        places = "; ".join(f"the {word} for {_list(at)}" for word, at in edges.items() if at)
        yield (
            f"The best rate of {count} of {len(best)} systems is at an edge of the rates that "
            f"were tried: {places}. Rates beyond the edges were not tried."
        )
    if idle := [name for name, row in best.items() if not row["attends"]]:
        yield (
            f"At every learning rate, the attention of {_list(idle)} is still unused when the "
            "trial ends. So the rate was chosen by perplexity alone."
        )


def _list(names: Sequence[str]) -> str:
    return ", ".join(_TITLES[name] for name in names)


def missing(record: Record, kind: str, system: str) -> list[str]:
    """List the trials of a system, of one kind, that are not in the record."""
    keys = [trial.key for trial in trials(kind) if trial.system == system]
    return [key for key in keys if key not in record.measurements["trials"]]


def _figure(row: dict[str, Any], name: str, form: str = ".2f") -> str:
    return "" if row["attention"] is None else format(row["attention"].get(name, 0.0), form)


_TITLES = {system.name: system.title for system in SYSTEMS}
_KINDS = {
    "approaches": (
        "Approaches",
        "system | approach",
        "The learning rate is 3e-3, or 1.5e-3 for “half the rate”. “Guided” means that "
        "attention is guided in the first half of the steps.",
    ),
    "rates": (
        "Learning rates",
        "system | learning rate",
        "Deep-Att, GNMT and MoE have guided attention in the first half of their steps.",
    ),
}
"""For each kind of trials: a title, the first columns of its table, and a note."""
_HEADS = " | perplexity | BLEU | first | diagonal | nats"
_CELLS = "{title} | {name} | {perplexity:.1f} | {bleu:.1f} | {first} | {diagonal} | {nats}"
_HEAD = (
    "Short training runs on Multi30k English-German compare ways to train the systems of [Table "
    "2](tables.md). The first trials compare ways to make a decoder use its attention. Each trial "
    "has as many steps as its system, with all layers, takes in {minutes} minutes on one thread. "
    "The warm-up is an eighth of the steps. Perplexity and greedy BLEU are measured on the "
    "validation text. The chosen trial of a system has the lowest perplexity among the trials "
    "that [use their attention](../howto/training-health.md), or among all trials if none does. A "
    "trial with fewer layers is chosen only if no trial with all layers uses its attention. All "
    "systems have the same number of trials of the learning rate; systems that did not learn to "
    "attend by themselves have further trials."
)
_COLUMNS = (
    "In the tables below, chosen trials are bold. “First” is the share of target tokens that "
    "attend most to the first source token. “Diagonal” is the correlation between the position of "
    "a target token and that of the source token to which it attends most. “Nats” is the increase "
    "in the loss per target token with uniform attention."
)
_UNRECORDED = (
    "## Not in the record\n\n- For GNMT and MoE, the values 0.1, 0.2 and 0.3 of "
    "`model.recurrent.initial_range` were tried with the rates 1.5e-3 and 3e-3, for 300 steps "
    "(commit c6c88f13). The range 0.2 with the rate 3e-3 learned fastest.\n- Deep-Att was trained "
    "at 3e-3 for 8,795 steps (commit aa76fe99), and diverged. Perplexity fell to 52 at step 520, "
    "and the gradient norm grew to 375 at step 1,024. Afterwards the source was not used, and "
    "BLEU stayed 0.0. So Table 2 has the second-best rate, 1.5e-3."
)
PAGE = ResultPage("tuning", "Trials for the systems of Table 2", {"tuning": body})


if __name__ == "__main__":
    main()
