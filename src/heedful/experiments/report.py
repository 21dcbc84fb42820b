"""What a table of trained systems prints, and the sentences about it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from heedful.experiments.corpus import TableCorpus
from heedful.experiments.measured import MeasuredSystem, at_cost, difference
from heedful.experiments.page import LEARNT, Rows, ScoreDifference

RISING = "↑"
"""Marks a system that still learns."""
_RISE, _LAST_PART = 1.0, 0.25


def still_learns(system: MeasuredSystem) -> bool:
    """Whether validation BLEU rose by more than 1 in the last quarter of a training."""
    if not system.curve:
        return False
    spent, reached = system.curve[-1].seconds, system.curve[-1].bleu
    return reached - at_cost(system.curve, "seconds", (1 - _LAST_PART) * spent) > _RISE


def neighbours(
    systems: Sequence[MeasuredSystem], corpus: TableCorpus, out: Path
) -> list[ScoreDifference]:
    """Compare each system that has learnt something with the next worse one."""
    ranked = sorted(
        (system for system in systems if system.bleu >= LEARNT), key=lambda system: -system.bleu
    )
    return [
        ScoreDifference(
            better.title, worse.title, *difference(better.name, worse.name, corpus, out), "BLEU"
        )
        for better, worse in pairwise(ranked)
    ]


def cost_rows(
    systems: Sequence[MeasuredSystem], published: tuple[str, Mapping[str, str]] | None = None
) -> Rows:
    """
    Lay out what every system costs and reaches.

    `published`: the head of a column, and what it has, by title; empty for others.
    """
    beside = () if published is None else (published[0],)
    rows: Rows = [
        (
            *("system", "weights", "steps", "minutes", "operations"),
            *("perplexity", *beside, "BLEU", "95 % interval", "chrF"),
            *("tokens/s, training", "tokens/s, search"),
        )
    ]
    for system in systems:
        low, high = system.interval
        rows.append(
            (
                system.title,
                f"{system.parameters:,}",
                f"{system.steps:,}",
                f"{system.seconds / 60:.1f}",
                f"{system.flops:.2e}",
                "" if system.perplexity is None else f"{system.perplexity:.2f}",
                *(() if published is None else (published[1].get(system.title, ""),)),
                f"{system.bleu:.1f}{RISING if still_learns(system) else ''}",
                f"{low:.1f} to {high:.1f}",
                f"{system.chrf:.1f}",
                f"{system.tokens_per_second:,.0f}",
                _whole(system.search_tokens_per_second),
            )
        )
    return rows


def equal_cost_rows(systems: Sequence[MeasuredSystem]) -> Rows:
    """Read validation BLEU at the least time and at the fewest operations that all have spent."""
    alone = [system for system in systems if system.curve]
    seconds = min(system.curve[-1].seconds for system in alone)
    flops = min(system.curve[-1].flops for system in alone)
    rows: Rows = [
        ("system", f"BLEU after {seconds / 60:.1f} minutes", f"after {flops:.1e} operations")
    ]
    for system in alone:
        bleu = (at_cost(system.curve, "seconds", seconds), at_cost(system.curve, "flops", flops))
        rows.append((system.title, *(f"{value:.1f}" for value in bleu)))
    return rows


def _whole(number: float | None) -> str:
    return "" if number is None else f"{number:,.0f}"


def plain(systems: Sequence[MeasuredSystem]) -> list[dict[str, Any]]:
    """Convert to plain values."""
    return [asdict(system) for system in systems]
