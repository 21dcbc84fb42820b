"""
The tables of trained systems: a row for each system, and their differences.

Trainings that differ only in their seed share a row. The row shows their mean BLEU and its spread
over seeds.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from heedful.experiments.corpus import TableCorpus
from heedful.experiments.measured import MeasuredSystem, at_cost, difference
from heedful.experiments.page import LEARNED, Rows, ScoreDifference

RISING = "↑"
"""Symbol for a system that was still learning at the end."""
SURE = "*"
"""Symbol for a difference whose interval excludes zero."""
STILL_LEARNS = (
    f"{RISING} marks systems that were still learning: their validation BLEU rose by more than 1 "
    "in the last quarter of the training."
)
"""The meaning of `RISING`, as text for a page."""
_RISE, _LAST_PART = 1.0, 0.25


def last_rise(trainings: Sequence[MeasuredSystem]) -> float:
    """Return the rise of validation BLEU in the last quarter of training, averaged over seeds."""
    rises = [
        training.curve[-1].bleu
        - at_cost(training.curve, "seconds", (1 - _LAST_PART) * training.curve[-1].seconds)
        for training in trainings
        if training.curve
    ]
    return fmean(rises) if rises else 0.0


def still_learns(trainings: Sequence[MeasuredSystem]) -> bool:
    """Tell whether validation BLEU rose by more than 1 in the last quarter (`last_rise`)."""
    return last_rise(trainings) > _RISE


def by_seed(systems: Sequence[MeasuredSystem]) -> list[list[MeasuredSystem]]:
    """Group training runs that differ only in their seed, such as `gnmt` and `gnmt-2`."""
    groups: dict[str, list[MeasuredSystem]] = {}
    for system in systems:
        groups.setdefault(re.sub(r"-\d+$", "", system.name), []).append(system)
    return list(groups.values())


def all_differences(
    systems: Sequence[MeasuredSystem], corpus: TableCorpus, out: Path
) -> list[ScoreDifference]:
    """Compare every pair of systems that have learned something, each with its first seed."""
    firsts = [group[0] for group in by_seed(systems) if group[0].bleu >= LEARNED]
    ranked = sorted(firsts, key=lambda system: -system.bleu)
    return [
        ScoreDifference(
            better.title, worse.title, *difference(better.name, worse.name, corpus, out), "BLEU"
        )
        for better, worse in combinations(ranked, 2)
    ]


def difference_rows(differences: Sequence[ScoreDifference]) -> Rows:
    """Lay the differences out as the lower half of a matrix: the row's score minus the column's."""
    titles = list(dict.fromkeys(pair.better for pair in differences))
    titles += [pair.worse for pair in differences if pair.worse not in titles][:1]
    cells = {
        (pair.worse, pair.better): f"{-pair.difference:.1f}{SURE if pair.interval[0] > 0 else ''}"
        for pair in differences
    }
    rows: Rows = [("", *(str(number) for number in range(1, len(titles))))]
    for number, title in enumerate(titles, start=1):
        columns = (cells.get((title, better), "") for better in titles[:-1])
        rows.append((f"{number} {title}", *columns))
    return rows


def seed_spread(systems: Sequence[MeasuredSystem]) -> float:
    """Return the largest difference in BLEU between seeds of one system; 0 if each has one seed."""
    scores = [[training.bleu for training in group] for group in by_seed(systems)]
    return max((max(group) - min(group) for group in scores), default=0.0)


def cost_rows(
    systems: Sequence[MeasuredSystem],
    published: tuple[str, Mapping[str, str]] | None = None,
) -> Rows:
    """
    Lay out scores and training costs, and the scores after the same number of operations.

    `published`: the header of a column, and its cells by system title; other cells are empty. Zero
    operations mean an unknown number, which is not shown.
    """
    flops = min(
        (system.curve[-1].flops for system in systems if system.curve and system.flops),
        default=0.0,
    )
    heads = ("system", *([published[0]] if published else []), "BLEU", "perplexity", "operations")
    rows: Rows = [(*heads, f"valid. at {flops:.1e}")]
    for group in by_seed(systems):
        first = group[0]
        curves = [system.curve for system in group if system.curve and system.flops]
        perplexities = [system.perplexity for system in group if system.perplexity is not None]
        rows.append(
            (
                first.title,
                *(() if published is None else (published[1].get(first.title, ""),)),
                _score(group),
                f"{fmean(perplexities):.1f}" if perplexities else "",
                f"{first.flops:.1e}" if first.flops else "",
                f"{fmean(at_cost(curve, 'flops', flops) for curve in curves):.1f}"
                if curves
                else "",
            )
        )
    return rows


def _score(trainings: Sequence[MeasuredSystem]) -> str:
    """Format the BLEU of one run with its margin, or the mean of several runs with their range."""
    scores = [training.bleu for training in trainings]
    rising = RISING if still_learns(trainings) else ""
    if len(scores) > 1:
        return f"{fmean(scores):.1f}{rising} ({min(scores):.1f} to {max(scores):.1f})"
    return f"{scores[0]:.1f}{rising} ± {trainings[0].margin:.1f}"


def training_rows(systems: Sequence[MeasuredSystem]) -> Rows:
    """Lay out one row for each training run, with a measure of how it uses attention."""
    rows: Rows = [
        ("training", "weights", "steps", "minutes", "BLEU", "±", "chrF", "nats of attention")
    ]
    for system in systems:
        use = system.attention or {}
        rows.append(
            (
                system.title,
                f"{system.parameters / 1e6:.1f} M",
                f"{system.steps:,}",
                f"{system.seconds / 60:.1f}",
                f"{system.bleu:.1f}",
                f"{system.margin:.1f}",
                f"{system.chrf:.1f}",
                f"{use['nats_of_uniform']:.2f}" if use else "",
            )
        )
    return rows


def plain(systems: Sequence[MeasuredSystem]) -> list[dict[str, Any]]:
    """Convert systems to dictionaries."""
    return [asdict(system) for system in systems]
