"""Sentences that compare the BLEU of a claim's models, and what leaves a comparison open."""

from collections.abc import Sequence

from heedful.experiments.page import LEARNT, ScoreDifference, capital
from heedful.paper.claims.trainings import Trainings
from heedful.paper.systems.measured import MeasuredSystem

_RISING = 1.0
"""BLEU by which the last validation must differ from the one before to be still rising."""


def compare_bleu(trained: Trainings, ours: str, theirs: str) -> str:
    """Say how far one model is from another, or that one of them has learnt nothing."""
    if weak := useless(trained, (ours, theirs)):
        return capital(f"{_titles(trained, (ours, theirs))} are not compared: {_list(weak)}.")
    apart = trained.difference(ours, theirs)
    return capital(
        f"{apart.better} minus {apart.worse}: {apart.difference:+.1f} BLEU "
        f"({say_interval(apart.interval)})."
    )


def useless(trained: Trainings, names: Sequence[str]) -> list[MeasuredSystem]:
    """Find the models that have learnt nothing of use."""
    return [trained.systems[name] for name in names if trained.systems[name].bleu < LEARNT]


def still_rising(trained: Trainings, names: Sequence[str]) -> str:
    """Say where a longer training of those that decide would change a difference."""
    rising = []
    for system in (trained.systems[name] for name in names):
        bleu = [point.bleu for point in system.curve]
        if len(bleu) > 1 and bleu[-1] - bleu[-2] > _RISING:
            rising.append(f"{system.title} ({bleu[-2]:.1f}, then {bleu[-1]:.1f})")
    if not rising:
        return ""
    return (
        f" Validation BLEU was still rising: {', '.join(rising)}; after more steps the differences "
        "would be others."
    )


def say_growth(growth: ScoreDifference) -> str:
    """Say how much further apart two models are in the longest sentences."""
    return (
        f"That is {growth.difference:+.1f} beside the other three quarters "
        f"({say_interval(growth.interval)})."
    )


def say_interval(interval: tuple[float, float]) -> str:
    """Say a 95 % interval of differences."""
    return f"95 % interval {interval[0]:+.1f} to {interval[1]:+.1f}"


def _titles(trained: Trainings, names: Sequence[str]) -> str:
    return " and ".join(trained.systems[name].title for name in names)


def _list(weak: Sequence[MeasuredSystem]) -> str:
    """Say of models that they have learnt nothing."""
    titles = ", ".join(f"{system.title} ({system.bleu:.1f} BLEU)" for system in weak)
    return f"{titles} {'have' if len(weak) > 1 else 'has'} learnt nothing of use"
