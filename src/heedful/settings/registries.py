"""
The registries of parts that settings name, except families (`heedful.families.registry`).

::

    model.attention.score    SCORES          build(heads, d_k) makes a module that scores keys
    train.objective          OBJECTIVES      build(run, machine) makes an `Objective`
    train.schedule           SCHEDULES       rate(schedule, step, decays) returns a rate
    train.best_by            METRICS         a `ValidationMetric`
    search.rules             RULES           build(tokenizer, lines, limits, device) makes a rule
    data.augment             AUGMENTATIONS   change(source, target, generator) returns a pair
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

from heedful.errors import PluginError
from heedful.settings.registry import Registry, cannot_take

ScoreText = Callable[[Sequence[str]], float]
"""Maps translations, one for each reference, to a number."""
BuildScore = Callable[[Sequence[str], str], ScoreText]
"""Maps references and the code of their language to a `ScoreText`."""


@dataclass(frozen=True)
class ValidationMetric:
    """
    A number by which validations are compared.

    Notes
    -----
    At the start of training, a plugin's `score` takes the references and the code of their
    language. It returns a function that maps translations to the number. This function is called
    at each validation.
    """

    key: str
    """The metric's name in `log.jsonl`; for a plugin, also in `train.best_by`."""
    label: str
    """The metric's name in printed text."""
    higher_is_better: bool
    """Whether a higher number is better."""
    score: BuildScore | str = ""
    """
    The function that `of` calls, or its ``module:name``; empty if the metric is not computed from
    text.
    """

    def of(self, references: Sequence[str], language: str) -> ScoreText:
        """Return the function that scores translations against the references."""
        build = resolve_name(self.score) if isinstance(self.score, str) else self.score
        score: ScoreText = build(references, language)
        if not callable(score):
            raise PluginError(
                f"the metric {self.key!r} must return a function of the translations, but returns "
                f"{score!r}."
            )
        return score


# Entries of a validation in the log that are not metrics.
_LOGGED = ("step", "flops", "valid_loss", "valid_perplexity", "samples", "bleu_signature")


def _takes(*names: str) -> Callable[[str, Any], str]:
    """Return a check that a part is a function with these parameters."""
    return lambda _, part: cannot_take(part, names)


def _wrong_metric(name: str, part: Any) -> str:
    """Return what is wrong with a metric; empty if nothing is."""
    if not isinstance(part, ValidationMetric):
        return f"must be a `ValidationMetric`, but is {type(part).__name__}"
    if part.key != name:
        return f"must have its name as `key`, but `key` is {part.key!r}"
    if name in _LOGGED:
        return (
            "must have another name, because each validation in the log already has an entry "
            "with this name"
        )
    return cannot_take(part.score, ("references", "language"))


# `MultiHeadAttention` itself computes our own scores, with kernels, so their parts are None.
SCORES: Registry[Any] = Registry(
    "attention score",
    dict.fromkeys(("scaled", "unscaled", "additive")),
    _takes("heads", "d_k"),
)
OBJECTIVES: Registry[Callable[[Any, Any], Any]] = Registry(
    "objective",
    {
        name: f"heedful.training.objective.build:build_{name}"
        for name in ("likelihood", "simcut", "rdrop", "reward", "risk")
    },
    _takes("run", "machine"),
)
_RATES = "heedful.training.schedule"
SCHEDULES: Registry[Callable[[Any, int, int], float]] = Registry(
    "schedule",
    {
        **{
            name: f"{_RATES}:{name}"
            for name in ("paper", "constant", "inverse_sqrt", "cosine", "plateau")
        },
        "step": f"{_RATES}:step_decay",
    },
    _takes("schedule", "step", "decays"),
)
_SCORE = "heedful.evaluation.validation"
METRICS: Registry[ValidationMetric] = Registry(
    "metric",
    {
        "bleu": ValidationMetric("bleu", "BLEU", True, f"{_SCORE}:score_bleu"),
        "chrf": ValidationMetric("chrf", "chrF", True, f"{_SCORE}:score_chrf"),
        "exact_match": ValidationMetric(
            "exact_match", "exact match", True, f"{_SCORE}:score_exact_match"
        ),
        "cer": ValidationMetric("cer", "CER", False, f"{_SCORE}:score_cer"),
        "f1": ValidationMetric("f1", "F1", True),  # of trees; a task computes it
        "loss": ValidationMetric("valid_loss", "loss", False),
    },
    _wrong_metric,
)
RULES: Registry[Callable[..., Any]] = Registry(
    "search rule", {}, _takes("tokenizer", "lines", "limits", "device")
)
AUGMENTATIONS: Registry[Callable[..., tuple[str, str]]] = Registry(
    "augmentation",
    {
        name: f"heedful.data.augment:{name}"
        for name in ("capitals", "title", "typos", "punctuation", "symbols", "tags")
    },
    _takes("source", "target", "generator"),
)
CHOSEN_BY: Mapping[str, Registry[Any]] = {
    "model.attention.score": SCORES,
    "train.objective": OBJECTIVES,
    "train.schedule": SCHEDULES,
    "train.best_by": METRICS,
    "search.rules": RULES,
    "data.augment": AUGMENTATIONS,
}
"""Registries by the dotted names of the settings that choose from them."""


def score_metrics() -> tuple[ValidationMetric, ...]:
    """List the metrics that compare translations with references."""
    return tuple(metric for name, metric in METRICS.items() if name != "loss")


def unknown_rules(names: str) -> list[str]:
    """List the rules that are not registered. `names`: names separated by spaces."""
    return [name for name in names.split() if name not in RULES]


def augmentation_shares(text: str) -> dict[str, float]:
    """
    Parse the share of pairs that each augmentation changes; raise `ValueError` if invalid.

    >>> augmentation_shares("capitals:0.05 typos:0.1")
    {'capitals': 0.05, 'typos': 0.1}
    """
    shares: dict[str, float] = {}
    for part in text.split():
        name, colon, number = part.partition(":")
        if name not in AUGMENTATIONS:
            raise ValueError(f"must name augmentations ({', '.join(AUGMENTATIONS)})")
        if not colon or not re.fullmatch(r"[0-9]*\.?[0-9]+", number) or name in shares:
            raise ValueError(
                "must be NAME:SHARE, once for each augmentation, such as capitals:0.05"
            )
        shares[name] = float(number)
    if math.fsum(shares.values()) > 1:
        raise ValueError("must have shares with a sum of at most 1")
    return shares
