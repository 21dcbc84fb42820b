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
    ranked = sorted((one for one in systems if one.bleu >= LEARNT), key=lambda one: -one.bleu)
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
    for one in systems:
        low, high = one.interval
        rows.append(
            (
                one.title,
                f"{one.parameters:,}",
                f"{one.steps:,}",
                f"{one.seconds / 60:.1f}",
                f"{one.flops:.2e}",
                "" if one.perplexity is None else f"{one.perplexity:.2f}",
                *(() if published is None else (published[1].get(one.title, ""),)),
                f"{one.bleu:.1f}{RISING if still_learns(one) else ''}",
                f"{low:.1f} to {high:.1f}",
                f"{one.chrf:.1f}",
                f"{one.tokens_per_second:,.0f}",
                _whole(one.search_tokens_per_second),
            )
        )
    return rows


def equal_cost_rows(systems: Sequence[MeasuredSystem]) -> Rows:
    """Read validation BLEU at the least time and at the fewest operations that all have spent."""
    alone = [one for one in systems if one.curve]
    seconds = min(one.curve[-1].seconds for one in alone)
    flops = min(one.curve[-1].flops for one in alone)
    rows: Rows = [
        ("system", f"BLEU after {seconds / 60:.1f} minutes", f"after {flops:.1e} operations")
    ]
    for one in alone:
        bleu = (at_cost(one.curve, "seconds", seconds), at_cost(one.curve, "flops", flops))
        rows.append((one.title, *(f"{value:.1f}" for value in bleu)))
    return rows


def _whole(number: float | None) -> str:
    return "" if number is None else f"{number:,.0f}"


def plain(systems: Sequence[MeasuredSystem]) -> list[dict[str, Any]]:
    """Convert to plain values."""
    return [asdict(one) for one in systems]
