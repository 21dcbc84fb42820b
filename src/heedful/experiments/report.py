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
_RISE, _LAST_PART = 1.0, 0.25


def still_learns(system: MeasuredSystem) -> bool:
    """Tell whether validation BLEU rose by more than 1 in the last quarter of a training."""
    if not system.curve:
        return False
    spent, reached = system.curve[-1].seconds, system.curve[-1].bleu
    return reached - at_cost(system.curve, "seconds", (1 - _LAST_PART) * spent) > _RISE


def by_seed(systems: Sequence[MeasuredSystem]) -> list[list[MeasuredSystem]]:
    """Group trainings that differ only in their seed, such as `gnmt` and `gnmt-2`."""
    groups: dict[str, list[MeasuredSystem]] = {}
    for system in systems:
        groups.setdefault(re.sub(r"-\d+$", "", system.name), []).append(system)
    return list(groups.values())


def all_differences(
    systems: Sequence[MeasuredSystem], corpus: TableCorpus, out: Path
) -> list[ScoreDifference]:
    """Compare every pair of systems that have learned something, by their first seeds."""
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


def cost_rows(
    systems: Sequence[MeasuredSystem], published: tuple[str, Mapping[str, str]] | None = None
) -> Rows:
    """
    Lay out each system's final cost and score, and its score after equally many operations.

    `published`: the header of a column, and its cells by title; other cells are empty.
    """
    extra_heads = () if published is None else (published[0],)
    flops = min((system.curve[-1].flops for system in systems if system.curve), default=0.0)
    rows: Rows = [
        (
            *("system", "weights", "steps", "minutes", "operations", "perplexity", *extra_heads),
            *("BLEU", "±", "seeds", "chrF", f"valid. BLEU at {flops:.1e}"),
        )
    ]
    for group in by_seed(systems):
        first, scores = group[0], [system.bleu for system in group]
        perplexities = [system.perplexity for system in group if system.perplexity is not None]
        low, high = first.interval
        curves = [system.curve for system in group if system.curve]
        rows.append(
            (
                first.title,
                f"{first.parameters / 1e6:.1f} M",
                f"{first.steps:,}",
                f"{first.seconds / 60:.1f}",
                f"{first.flops:.1e}",
                f"{fmean(perplexities):.1f}" if perplexities else "",
                *(() if published is None else (published[1].get(first.title, ""),)),
                f"{fmean(scores):.1f}{RISING if any(map(still_learns, group)) else ''}",
                f"{(high - low) / 2:.1f}",
                f"{min(scores):.1f} to {max(scores):.1f}" if len(scores) > 1 else "",
                f"{fmean(system.chrf for system in group):.1f}",
                f"{fmean(at_cost(curve, 'flops', flops) for curve in curves):.1f}"
                if curves
                else "",
            )
        )
    return rows


def plain(systems: Sequence[MeasuredSystem]) -> list[dict[str, Any]]:
    """Convert systems to dictionaries."""
    return [asdict(system) for system in systems]
