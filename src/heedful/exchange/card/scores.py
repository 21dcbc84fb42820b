"""
The scores in a model card: only measured scores, with signatures if they were recorded.

The training log contains validation scores; a card shows the scores at the step of the model's
weights. Scores on test sets are read from the output of `heedful evaluate --json`.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from heedful.errors import ExchangeError
from heedful.evaluation.comet import decimals_of
from heedful.files import read_within
from heedful.runs.checkpoint import STATE
from heedful.runs.folder import RunFolder, read_json
from heedful.runs.log_entries import read_entries
from heedful.runs.run import read_corpus
from heedful.settings.registries import score_metrics

_LARGEST = 1 << 24
# Keys of `heedful evaluate --json`, each with the metric's name in the card and on the hub.
_METRICS = {
    "bleu": ("BLEU", "bleu"),
    "paper_bleu": ("BLEU, tokenized and compound-split", "bleu"),
    "chrf": ("chrF", "chrf"),
    "ter": ("TER", "ter"),
    "exact_match": ("exact match", "exact_match"),
    "cer": ("CER", "cer"),
    "comet": ("COMET", "comet"),
}
_SIDES = ("valid_source", "valid_target")


class CardScore(NamedTuple):
    """One measured score."""

    text: str
    """Name of the translated text."""
    name: str
    """Name of the metric in the card."""
    metric: str
    """Name of the metric on the hub."""
    value: float
    signature: str
    """Signature that identifies how the score was computed; empty if it was not recorded."""


def recorded_scores(folder: RunFolder, checkpoint: Path) -> list[CardScore]:
    """List the validation scores at a checkpoint's step; none for averaged weights."""
    step = read_json(checkpoint / STATE).get("step")
    if type(step) is not int or not folder.log.is_file():
        return []
    metrics = {metric.key: metric for metric in score_metrics()}
    last: dict[str, Any] = {}
    for entry in read_entries(folder.log):
        if entry is not None and entry["step"] == step and metrics.keys() & entry.keys():
            last = entry
    text, scores = _validation_name(folder), []
    for key, metric in metrics.items():
        if (value := _number(last.get(key))) is not None:
            signature = last.get("bleu_signature") if key == "bleu" else ""
            scores.append(CardScore(text, metric.label, key, value, str(signature or "")))
    return scores


def evaluated_scores(path: Path) -> list[CardScore]:
    """
    Read the output of `heedful evaluate --json`; the file is named after the test set.

    Raises `ExchangeError` if the file has other content.
    """
    try:
        content = json.loads(read_within(path, _LARGEST).decode("utf-8-sig"))
    except OSError as error:
        raise _no_scores(path, f"it cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _no_scores(path, "it is not JSON") from error
    scores = list(_scores_in(path.stem, content))
    if not scores:
        raise _no_scores(path, "it has no score with a signature")
    return scores


def _scores_in(text: str, content: object) -> Iterator[CardScore]:
    """List the scores of an evaluation that have a value and a signature."""
    for key, (name, metric) in _METRICS.items():
        score = content.get(key) if isinstance(content, dict) else None
        if not isinstance(score, dict):
            continue
        value, signature = _number(score.get("score"), key), score.get("signature")
        if value is not None and isinstance(signature, str) and signature:
            yield CardScore(text, name, metric, value, signature)


def _number(value: object, metric: str = "") -> float | None:
    """Round a finite number to the decimals of printed scores; None for other values."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return round(float(value), decimals_of(metric))


def _validation_name(folder: RunFolder) -> str:
    """Name the validation text by its files."""
    corpus = read_corpus(folder)
    names = [str(entry["file"]) for side in _SIDES for entry in corpus.get(side, ())]
    return f"validation text ({', '.join(names)})" if names else "validation text"


def _no_scores(path: Path, reason: str) -> ExchangeError:
    """Build the error for a file without scores."""
    return ExchangeError(
        f"--scores must be the output of `heedful evaluate --json`, but {path} is not: {reason}. "
        "Write this output to a file that is named after the test set."
    )
