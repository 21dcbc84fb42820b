"""Train a planned system and measure it; results are saved, so a killed run can continue."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from heedful.errors import RunFolderError, RunStopped
from heedful.evaluation.bleu import text_metrics
from heedful.evaluation.significance import Resampling, compare, confidence_intervals
from heedful.evaluation.sufficient_statistics import SufficientStatistics, measure
from heedful.experiments.corpus import TableCorpus
from heedful.experiments.plan import Plan, PlannedSystem
from heedful.experiments.record import read_json, write_json
from heedful.experiments.system import TableSystem
from heedful.files import read_text_within, replacing_file
from heedful.model.weights import parameter_count
from heedful.runs.average import average
from heedful.runs.log_entries import read_entries
from heedful.runs.run import Run
from heedful.training.health.attention_use import AttentionUse
from heedful.training.health.registry import KEY
from heedful.training.history import read_history
from heedful.training.train import train
from heedful.translation.result import Translation
from heedful.translation.translator import Translator

_BEAM = 4


@dataclass(frozen=True)
class CurvePoint:
    """A validation, and the training costs up to it."""

    step: int
    seconds: float
    """Training time, computed from the steps and the planned rate."""
    flops: float
    perplexity: float
    bleu: float


@dataclass(frozen=True)
class MeasuredSystem:
    """A trained system with its scores."""

    name: str
    title: str
    parameters: int
    steps: int
    target_tokens: int
    seconds: float
    """Training time: steps at the planned rate."""
    tokens_per_second: float
    """Target tokens per second of training."""
    flops: float
    """Number of operations of the training."""
    perplexity: float | None
    """Perplexity per subword at the last validation; None for an ensemble."""
    valid_bleu: float
    """Validation BLEU of the averaged checkpoints."""
    valid_interval: tuple[float, float]
    bleu: float
    """BLEU on the test set."""
    interval: tuple[float, float]
    chrf: float
    signature: str
    sentences_per_second: float
    """Search speed, measured once; other programs may have been running."""
    curve: tuple[CurvePoint, ...]
    search_tokens_per_second: float | None = None
    """Target tokens per second in search, including end symbols; None in older records."""
    attention: dict[str, float] | None = None
    """Use of attention at the last validation; None for an ensemble and in older records."""

    @property
    def margin(self) -> float:
        """Half the width of BLEU's confidence interval."""
        low, high = self.interval
        return (high - low) / 2

    @classmethod
    def of(cls, plain: dict[str, Any]) -> "MeasuredSystem":
        """Read the measurements from JSON values."""
        points = tuple(CurvePoint(**point) for point in plain["curve"])
        intervals = {name: tuple(plain[name]) for name in ("interval", "valid_interval")}
        return cls(**{**plain, **intervals, "curve": points})


def train_and_measure(
    system: TableSystem,
    planned: Sequence[PlannedSystem],
    plan: Plan,
    corpus: TableCorpus,
    out: Path,
) -> MeasuredSystem:
    """
    Train a system unless it is an ensemble, and score it.

    The last checkpoints are averaged. `planned`: the members of an ensemble, which are already
    trained, or the system itself.

    If `out` already has results of the system, they are returned.
    """
    path = out / "measured" / f"{system.name}.json"
    if path.exists():
        return _read(out, system.name)
    runs = [out / "runs" / member.name for member in planned]
    if not system.members:
        _train(system, planned[0], plan, corpus, out)
    curves = [_curve(run, member) for run, member in zip(runs, planned, strict=True)]
    if system.after:
        curves = [_after(_read(out, system.after).curve, curve) for curve in curves]
    translator = Translator.load(runs, threads=plan.threads)
    began = time.perf_counter()
    translations = _translate(translator, system, "test", corpus, out)
    elapsed = time.perf_counter() - began
    texts = [line.text for line in translations]
    test = count_matches(texts, "test", corpus)
    valid_texts = [line.text for line in _translate(translator, system, "valid", corpus, out)]
    valid = count_matches(valid_texts, "valid", corpus)
    (interval,), (valid_interval,) = (
        confidence_intervals([counted], Resampling()) for counted in (test, valid)
    )
    measured = MeasuredSystem(
        system.name,
        system.title,
        sum(parameter_count(Run.open(run).build()) for run in runs),
        sum(member.steps for member in planned),
        sum(round(read_history(_log(run)).last("target_tokens") or 0) for run in runs),
        sum(curve[-1].seconds for curve in curves),
        planned[0].tokens_per_second,
        sum(curve[-1].flops for curve in curves),
        curves[0][-1].perplexity if len(curves) == 1 else None,
        valid.score,
        valid_interval,
        test.score,
        interval,
        count_matches(texts, "test", corpus, "chrf").score,
        test.signature,
        len(texts) / elapsed,
        curves[0] if len(curves) == 1 else (),
        sum(len(line.tokens) + 1 for line in translations) / elapsed,
        _attention_use(runs[0]) if len(runs) == 1 else None,
    )
    path.parent.mkdir(exist_ok=True)
    write_json(path, asdict(measured))
    return measured


def _read(out: Path, name: str) -> MeasuredSystem:
    """Read the earlier measurements of a system."""
    path = out / "measured" / f"{name}.json"
    return read_json(path, "contain the scores of a training run", MeasuredSystem.of)


def _after(earlier: Sequence[CurvePoint], curve: Sequence[CurvePoint]) -> tuple[CurvePoint, ...]:
    """Prepend the curve of the earlier training, and add its costs to the points of `curve`."""
    spent = earlier[-1]
    return (
        *earlier,
        *(
            replace(
                point,
                step=point.step + spent.step,
                seconds=point.seconds + spent.seconds,
                flops=point.flops + spent.flops,
            )
            for point in curve
        ),
    )


def difference(
    better: str, worse: str, corpus: TableCorpus, out: Path, part: str = "test"
) -> tuple[float, tuple[float, float]]:
    """Return the BLEU difference between two systems on the same sentences, and its interval."""
    ours, theirs = (
        count_matches(read_output(name, part, out), part, corpus) for name in (better, worse)
    )
    (tested,) = compare([ours], [theirs])
    return tested.difference, tested.interval


def at_cost(curve: Sequence[CurvePoint], kind: str, cost: float) -> float:
    """
    Read BLEU off a curve at a given cost, by linear interpolation between validations.

    `kind`: `seconds` or `flops`.

    The curve begins with BLEU 0 at cost 0.
    """
    costs = [0.0, *(float(getattr(point, kind)) for point in curve)]
    return float(np.interp(cost, costs, [0.0, *(point.bleu for point in curve)]))


def _train(
    system: TableSystem, planned: PlannedSystem, plan: Plan, corpus: TableCorpus, out: Path
) -> None:
    """Train a system or finish its training, and average its checkpoints."""
    run = out / "runs" / planned.name
    if (run / "average").is_dir():
        return
    text: dict[str, Any] = {"data": out / planned.data}
    if system.after:  # a continued training keeps the subwords of the earlier system
        text = {
            "finetune_from": out / "runs" / system.after,
            "source": corpus.file("train", corpus.source),
            "target": corpus.file("train", corpus.target),
        }
    try:
        train(
            plan.recipe,
            out=run,
            **text,
            valid_source=corpus.file("valid", corpus.source),
            valid_target=corpus.file("valid", corpus.target),
            settings=[*planned.settings, f"train.threads={plan.threads}"],
            resume=run.exists(),
            quiet=True,
        )
    except RunStopped as stopped:
        raise RunStopped(
            f"a signal ended the training of {system.title}; a checkpoint was written. Run the "
            "same command again to continue."
        ) from stopped
    average(run)


def _curve(run: Path, planned: PlannedSystem) -> tuple[CurvePoint, ...]:
    """Read the validations of a run, and the training costs up to each of them."""
    history = read_history(_log(run))
    step_seconds = planned.batch_tokens / planned.tokens_per_second
    columns = ("step", "flops", "valid_loss", "bleu")
    validations = [history.validation[name] for name in columns]
    if np.isnan(validations[1]).any():
        raise RunFolderError(
            f"{run} must have a log with operation counts, but an older version of heedful began "
            "this run; delete the run and repeat the command."
        )
    return tuple(
        CurvePoint(
            int(step), float(step) * step_seconds, float(counted), float(np.exp(loss)), float(bleu)
        )
        for step, counted, loss, bleu in zip(*validations, strict=True)
    )


def _attention_use(run: Path) -> dict[str, float] | None:
    """Read the last measurement of the use of attention from a log; None if there is none."""
    use = None
    for entry in read_entries(_log(run)):
        if entry is not None:
            use = entry.get(KEY, {}).get(AttentionUse.name, use)
    return use


def _translate(
    translator: Translator, system: TableSystem, part: str, corpus: TableCorpus, out: Path
) -> list[Translation]:
    """Translate the valid or test text (`part`), and save the translations."""
    translations = translator.translate(
        corpus.lines(part, corpus.source),
        beam=_BEAM,
        replace_unknown=system.replace_unknown,
        # the penalty depends on the attention to the source, which differs within an ensemble
        coverage_penalty=0.0 if system.members else None,
    )
    file = output_file(system.name, part, out)
    file.parent.mkdir(exist_ok=True)
    with replacing_file(file) as stream:
        stream.write("".join(f"{line.text}\n" for line in translations))
    return translations


def count_matches(
    lines: Sequence[str], part: str, corpus: TableCorpus, metric: str = "bleu"
) -> SufficientStatistics:
    """Count the matches of each line with the reference, for scores and their intervals."""
    metrics = text_metrics([corpus.lines(part, corpus.target)], language=corpus.target)
    return measure(metrics[metric], lines)


def _log(run: Path) -> Path:
    return run / "log.jsonl"


def output_file(name: str, part: str, out: Path) -> Path:
    """Return the path of a system's translations of the valid or test text (`part`)."""
    return out / "output" / f"{name}.{part}.txt"


def read_output(name: str, part: str, out: Path) -> list[str]:
    """Read a system's translations of the valid or test text (`part`)."""
    return read_text_within(output_file(name, part, out)).split("\n")[:-1]
