"""
BLEU on small corpora: trials of settings on Multi30k, then one row for each corpus.

    python -m benchmarks.quality rates [--name NAME ...]
    python -m benchmarks.quality trials [--name NAME ...] [--corpus CORPUS] [--again] [--minutes M]
    python -m benchmarks.quality corpora [--name NAME ...] [--seed S] [--threads T] [--runs FOLDER]

`rates` needs an idle machine. It measures the speed of each trial's settings, on one thread with
sentences of Multi30k and on two threads with sentences of each corpus. A training's number of steps
follows from its rate and its minutes, so the training runs themselves may run at other times or on
other machines. With `--name`, only these trials are measured, in turns with the trial BASE: their
rates are multiples of the recorded rate of BASE.

Trials read the validation text only, of Multi30k or of another corpus, and a noisy copy of it.
Where the run folder of a trial still exists, `--again` scores it again.

`corpora` trains a model on each corpus with the settings of the trial CHOSEN, and scores the
corpus's test set. Its steps always follow from the rate on two threads; with `--threads 1`, two
such training runs next to each other take less time than one after the other. Each training is
added to `docs/results/quality.json` when it ends, and the page is written from this record.
Recorded training runs are repeated only with `--again`.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.noise import read_copies, score_run
from benchmarks.report import (
    ORIGIN,
    ResultPage,
    arguments,
    heedful,
    machine,
    measurements_of,
    origins,
    read,
)
from benchmarks.small_corpora import CORPORA, SmallCorpus, arguments_of
from benchmarks.training import describe_training, train
from heedful.config.load import load_config
from heedful.experiments.page import fold, table
from heedful.experiments.rates import TimedSettings, rates_in_turns
from heedful.experiments.record import Record

RECIPE = "multi30k"
SLOWDOWN = {"likelihood": 1.0, "simcut": 2.3, "rdrop": 2.5}
"""Time of a step with each objective, relative to likelihood (docs/howto/two-passes.md)."""
_COSINE = ("train.schedule=cosine", "train.warmup=500", "data.vocabulary_size=4000")
_WIDE = (*_COSINE, "model.d_model=256", "model.d_ff=512", "train.learning_rate=3e-3")
_WIDE_SIMCUT = (*_WIDE, "train.objective=simcut", "train.second_pass_start=0.5")
TRIALS: dict[str, tuple[str, ...]] = {
    "recipe": (),
    "cosine": (*_COSINE, "train.learning_rate=5e-3"),
    "small batches": (*_COSINE, "train.learning_rate=5e-3", "train.batch_tokens=2048"),
    "wide": _WIDE,
    "wide, small batches": (*_WIDE, "train.batch_tokens=2048"),
    "wide, dropout 0.4": (*_WIDE, "model.dropout=0.4"),
    "wide, sampled subwords": (*_WIDE, "data.subword_sampling=0.1"),
    "wide, SimCut": _WIDE_SIMCUT,
    "wide, R-Drop": (*_WIDE, "train.objective=rdrop", "train.second_pass_start=0.5"),
    "wide, SimCut, sampled subwords": (*_WIDE_SIMCUT, "data.subword_sampling=0.1"),
    "wide, rotary": (*_WIDE, "model.positions=rotary"),
    "wide, rotary, SimCut": (*_WIDE_SIMCUT, "model.positions=rotary"),
    "rotary": (*_COSINE, "train.learning_rate=5e-3", "model.positions=rotary"),
    "wide, rotary, dropout 0.4": (*_WIDE, "model.positions=rotary", "model.dropout=0.4"),
    "wide, rotary, sampled subwords": (
        *_WIDE,
        *("model.positions=rotary", "data.subword_sampling=0.1"),
    ),
    "wide, rotary, small batches": (
        *_WIDE,
        *("model.positions=rotary", "train.batch_tokens=2048"),
    ),
}
BASE = "wide"
"""The trial with which later trials are timed in turns, because the speed of machines varies."""
MULTI30K = "multi30k"
CHOSEN = "wide, rotary"
"""The trial whose settings the training runs on the corpora have."""


def main() -> None:
    """Measure the rates, or do the training runs that the record lacks."""
    parser = arguments(__doc__, "quality")
    parser.add_argument("kind", choices=("rates", "trials", "corpora"))
    parser.add_argument("--name", action="append", default=[])
    parser.add_argument("--corpus", choices=[*CORPORA], default=MULTI30K)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    is_trial = options.kind != "corpora"
    names = TRIALS if is_trial else CORPORA
    if unknown := sorted({*options.name} - {*names}):
        parser.error(f"--name must be one of {'; '.join(names)}; but is {unknown[0]}")
    if options.kind == "rates":
        origin = dict(zip(ORIGIN, (options.commit, machine()), strict=True))
        rates = add_rates(options.name, origin) if options.name else measure_rates() | origin
        _keep({"rates": rates}, {}, options.commit)
        return
    for name in options.name or names:
        trainings = measurements_of("quality").get(options.kind, {})
        key = trial_key(name, options.corpus) if is_trial else f"{name}, seed {options.seed}"
        if key in trainings and not options.again:
            continue
        print(key, flush=True)
        run = options.runs / re.sub(r"\W+", "-", key)
        if is_trial:
            measured, lines = measure_trial(name, options.corpus, options.minutes, run)
        else:
            measured, lines = measure_corpus(name, options.seed, options.threads, run)
        measured |= {"commit": options.commit, "machine": machine()}
        # read again, because another call may have added a training run in the meantime
        trainings = measurements_of("quality").get(options.kind, {})
        # the tree stays small: only translations of test sets are kept
        outputs = {} if is_trial else {key: lines}
        _keep({options.kind: trainings | {key: measured}}, outputs, options.commit)


def _keep(measured: dict[str, Any], outputs: dict[str, list[str]], commit: str) -> None:
    """Add measurements and translations to the record."""
    record = read("quality")
    earlier = ({}, {}) if record is None else (record.measurements, record.outputs)
    PAGE.keep("quality", earlier[0] | measured, commit, outputs=earlier[1] | outputs)


def measure_rates(names: Iterable[str] = TRIALS) -> dict[str, dict[str, float]]:
    """
    Measure the tokens per second of the settings of trials, on the side that has more tokens.

    Returns rates by trial: of trials on one thread, and of each corpus on two threads.
    """
    trials = _rates(names, CORPORA["multi30k"], threads=1)
    corpora = {name: _rates(names, corpus, threads=2) for name, corpus in CORPORA.items()}
    return {"trials": trials} | corpora


def add_rates(names: Sequence[str], origin: Mapping[str, str]) -> dict[str, Any]:
    """
    Measure trials in turns with BASE, and add their rates, relative to BASE, to the record.

    Trials that differ only in a second pass, dropout or subword sampling share a rate.
    """
    known = measurements_of("quality")["rates"]
    timed = {_timed_settings(TRIALS[name]) for name in names}
    names = [name for name in TRIALS if _timed_settings(TRIALS[name]) in timed]
    measured = measure_rates(dict.fromkeys((BASE, *names)))
    added = {
        kind: {name: known[kind][BASE] * rates[name] / rates[BASE] for name in names}
        for kind, rates in measured.items()
    }
    origins_of_added = known.get("added", {}) | dict.fromkeys(names, origin)
    return (
        known
        | {kind: known[kind] | rates for kind, rates in added.items()}
        | {"added": origins_of_added}
    )


def _rates(names: Iterable[str], corpus: SmallCorpus, threads: int) -> dict[str, float]:
    """Measure the tokens per second of each trial with likelihood."""
    by_likelihood = {name: (*_timed_settings(TRIALS[name]), *corpus.settings) for name in names}
    distinct = list(dict.fromkeys(by_likelihood.values()))
    timed = [TimedSettings(row, *corpus.lengths) for row in distinct]
    rates = rates_in_turns(RECIPE, timed, threads)
    return {name: rates[distinct.index(row)] for name, row in by_likelihood.items()}


def _timed_settings(settings: Sequence[str]) -> tuple[str, ...]:
    """Remove the settings of a second pass, and those that do not change the time of a step."""
    second_pass = ("train.objective=", "train.second_pass_start=")
    without_cost = ("model.dropout=", "data.subword_sampling=")
    return tuple(s for s in settings if not s.startswith(second_pass + without_cost))


def steps_in(trial: str, minutes: float, kind: str = "trials") -> int:
    """
    Compute the steps of a training run from its minutes, its rate and the cost of second passes.

    A trial without a rate has the rate of a trial that differs only in what costs no time.
    `kind`: the name of the corpus; "trials" for trials.
    """
    rates = measurements_of("quality")["rates"][kind]
    timed = {_timed_settings(TRIALS[name]): name for name in rates}
    rate: float = rates[trial if trial in rates else timed[_timed_settings(TRIALS[trial])]]
    training = load_config(RECIPE, TRIALS[trial]).train
    alone = 1.0 if training.objective == "likelihood" else training.second_pass_start
    cost = alone + (1 - alone) * SLOWDOWN[training.objective]
    return int(60 * minutes * rate / (training.batch_tokens * cost))


def trial_key(name: str, corpus: str) -> str:
    """Return the name of a trial in the record; trials on Multi30k are named by their settings."""
    return name if corpus == MULTI30K else f"{name}; {corpus}"


def measure_trial(
    name: str, corpus: str, minutes: float, run: Path
) -> tuple[dict[str, Any], list[str]]:
    """Train on a corpus; return the scores of the validation text, and its translations."""
    kind = "trials" if corpus == MULTI30K else corpus
    steps = steps_in(name, minutes, kind)
    settings = (
        *TRIALS[name],
        *_lengths(steps),
        "train.threads=1",
    )
    measured, lines = _measure(CORPORA[corpus], settings, "valid", run)
    copies = read_copies(*CORPORA[corpus].write(run.with_name(f"{run.name}-text"))["valid"])
    noisy = score_run(run, {"mixed": copies["mixed"]}, ("text",))["scores"]["text"]["mixed"]
    return measured | {"noisy": noisy}, lines


def measure_corpus(
    name: str, seed: int, threads: int, run: Path
) -> tuple[dict[str, Any], list[str]]:
    """Train on a corpus; return the scores of its test set, and its translations."""
    corpus = CORPORA[name]
    steps = steps_in(CHOSEN, corpus.minutes, name)
    settings = (
        *TRIALS[CHOSEN],
        *corpus.settings,
        *_lengths(steps),
        f"train.threads={threads}",
        f"train.seed={seed}",
    )
    return _measure(corpus, settings, "test", run)


def _lengths(steps: int) -> tuple[str, ...]:
    """Set the number of steps, and the steps between validations and between checkpoints."""
    return (
        f"train.steps={steps}",
        f"train.validate_steps={-(-steps // 6)}",
        f"train.checkpoint_steps={-(-steps // 40)}",
        "train.checkpoint_minutes=none",
        "train.validation_samples=0",
        "train.precision=bf16",
    )


def _measure(
    corpus: SmallCorpus, settings: Sequence[str], part: str, run: Path
) -> tuple[dict[str, Any], list[str]]:
    """Train a model, and score the average of its last checkpoints with a beam of 4."""
    text = corpus.write(run.with_name(f"{run.name}-text"))
    train(run, RECIPE, arguments_of(text), settings)
    source, reference = text[part]
    output = run / f"{part}.translated"
    heedful("translate", run, "--input", source, "--output", output, "--weights", "average")
    for path in (output, reference):
        lines = [corpus.score_form(line) for line in path.read_text("utf-8").splitlines()]
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    files = ("--hypothesis", output, "--reference", reference, "--json")
    files += ("--language", corpus.languages[1])
    cased = json.loads(heedful("evaluate", *files))
    lower = json.loads(heedful("evaluate", *files, "--lowercase"))["bleu"]
    scores = {
        "settings": settings,
        "bleu": cased["bleu"]["score"],
        "chrf": cased["chrf"]["score"],
        "lower-cased": lower["score"],
        "signatures": [cased["bleu"]["signature"], lower["signature"]],
    }
    return describe_training(run) | scores, output.read_text("utf-8").splitlines()


def body(record: Record) -> str:
    """Lay out the corpora, and the trials in a collapsed section."""
    measured = record.measurements
    parts = []
    if rows := measured.get("corpora"):
        cells = [
            row | {"title": CORPORA[key.partition(",")[0]].title, "seed": key.split()[-1]}
            for key, row in rows.items()
        ]
        parts += [
            table(
                "corpus | seed | minutes | target tokens | BLEU | lower-cased BLEU | chrF",
                "{title} | {seed} | {minutes:.0f} | {target_tokens:,} | {bleu:.2f} | "
                "{lower-cased:.2f} | {chrf:.2f}",
                cells,
            ),
            *_means(rows),
            f"Signatures: {_signatures(rows.values())}. {_TESTS}",
            _STEPS,
            *origins(rows),
        ]
    if trials := measured.get("trials"):
        tables = []
        for name, corpus in CORPORA.items():
            cells = [
                _trial_cells(key.partition(";")[0], row)
                for key, row in trials.items()
                if (key.partition("; ")[2] or MULTI30K) == name
            ]
            head = "trial | settings | steps | minutes | BLEU | lower-cased BLEU | noisy BLEU"
            line = "{name} | {shown} | {steps:,} | {minutes:.0f} | {bleu:.2f} | {lower-cased:.2f} "
            line += "| {noisy}"
            if cells:
                tables += [f"{corpus.title}:", table(head, line, cells)]
        title = "Trials, scored on the validation text"
        parts.append(fold(title, [_TRIALS, *tables, *origins(trials)]))
    if rates := measured.get("rates"):
        added = {f"{name}, relative to {BASE}": row for name, row in rates.get("added", {}).items()}
        measured_at = origins({"all other speeds" if added else "all speeds": rates} | added)
        parts.append(fold("Speeds", [_RATES, _rate_table(rates), *measured_at]))
    return "\n\n".join(parts)


def _trial_cells(name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a trial to the cells of its row; the first trials were not scored on noisy text."""
    noisy = f"{row['noisy']:.2f}" if "noisy" in row else ""
    settings = _format_settings(TRIALS.get(name, ()))
    return {**row, "name": name, "shown": settings, "noisy": noisy}


def _means(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """State the mean, the lowest and the highest scores of each corpus with several seeds."""
    paragraphs = []
    for name, corpus in CORPORA.items():
        of_corpus = [row for key, row in rows.items() if key.partition(",")[0] == name]
        if len(of_corpus) > 1:
            scores = []
            for title, score in (("BLEU", "bleu"), ("lower-cased BLEU", "lower-cased")):
                values = [row[score] for row in of_corpus]
                scores.append(
                    f"{title} {fmean(values):.2f} ({min(values):.2f} to {max(values):.2f})"
                )
            paragraphs.append(
                f"Means over {len(of_corpus)} seeds of {corpus.title}: {', '.join(scores)}."
            )
    return paragraphs


def _rate_table(rates: Mapping[str, Mapping[str, float]]) -> str:
    """Lay out the speeds of each trial's settings."""
    titles = {"trials": "multi30k, one thread"} | {name: name for name in CORPORA}
    names = [name for name in titles if name in rates]
    return table(
        " | ".join(["trial", *(titles[name] for name in names)]),
        " | ".join(["{trial}", *(f"{{{name}:,.0f}}" for name in names)]),
        [
            {"trial": trial} | {name: rates[name][trial] for name in names}
            for trial in rates["trials"]
        ],
    )


def _signatures(rows: Iterable[dict[str, Any]]) -> str:
    """List all signatures of BLEU, without duplicates."""
    every = dict.fromkeys(signature for row in rows for signature in row["signatures"])
    return ", ".join(f"`{signature}`" for signature in every)


def _format_settings(settings: Sequence[str]) -> str:
    """Format settings as inline code."""
    return " ".join(f"`{setting}`" for setting in settings)


_TESTS = (
    "Test sets are test_2016_flickr, the test parts of Tatoeba and Tanaka, and lines 1,001 to "
    "3,000 of Europarl's development set, which is from another quarter than the training text."
)
_STEPS = (
    "The number of steps of each corpus follows from the speed on two threads of an idle machine "
    f"and {CORPORA['multi30k'].minutes:.0f} minutes (Europarl: "
    f"{CORPORA['europarl-fr-en'].minutes:.0f}). The table shows the minutes that each training "
    "run actually took, on one or two threads and sometimes next to other work."
)
_RATES = (
    "Tokens per second on an idle machine, counted on the side with more tokens, without a second "
    "pass. All columns except “one thread” are for two threads. A step with a second pass counts "
    f"as {SLOWDOWN['simcut']} steps (SimCut) or {SLOWDOWN['rdrop']} steps (R-Drop)."
)
_TRIALS = (
    "Each trial changes settings of the recipe `multi30k`. Its number of steps follows from its "
    "measured speed, so that all trials on a corpus take the same time on an idle machine. The "
    "table shows the minutes that each trial actually took. “Noisy BLEU” is cased BLEU of a copy "
    "of the validation text with capitals, typing errors, symbols and tags "
    "(`benchmarks/noisy_copy.py`)."
)
PAGE = ResultPage("quality", "BLEU on small corpora", {"quality": body})


if __name__ == "__main__":
    main()
