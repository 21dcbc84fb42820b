"""Scores of validation translations, without sacreBLEU's advice on the console."""

from collections.abc import Sequence
from contextlib import suppress
from math import isfinite
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from heedful.errors import PluginError
from heedful.evaluation.languages import bleu_tokenizer, is_language, written_language
from heedful.evaluation.line_metrics import CharacterErrorRate, ExactMatch
from heedful.evaluation.sufficient_statistics import measure
from heedful.settings.registries import METRICS, ScoreText


class ValidationScorer:
    """A scorer of translations of the validation text, whose references are prepared once."""

    def __init__(
        self, references: Sequence[str], language: str = "", names: Sequence[str] = ("bleu",)
    ) -> None:
        # file extensions such as .tgt are not languages
        language = language if is_language(language) else written_language(references)
        self.signature = str(_bleu(references[:1], language).get_signature())
        self.scores = {name: METRICS[name].of(references, language) for name in names}

    def __call__(self, translations: Sequence[str]) -> dict[str, float | str]:
        """Return each score in percent, and BLEU's signature."""
        scores: dict[str, float | str] = {
            name: _number(name, score(translations)) for name, score in self.scores.items()
        }
        return scores | {"bleu_signature": self.signature}


def _number(name: str, score: Any) -> float:
    """Convert the result of a metric to a number; refuse NaN and infinity."""
    with suppress(TypeError, ValueError):
        if isfinite(number := float(score)):
            return number
    raise PluginError(f"the metric {name!r} must return a finite number, but returns {score!r}.")


def score_bleu(references: Sequence[str], language: str) -> ScoreText:
    """Prepare references for BLEU."""
    bleu = _bleu(references, language)
    return lambda texts: float(bleu.corpus_score(texts, None).score)


def score_chrf(references: Sequence[str], language: str) -> ScoreText:
    """Prepare references for chrF."""
    del language
    chrf = CHRF(references=[references])
    return lambda texts: float(chrf.corpus_score(texts, None).score)


def score_exact_match(references: Sequence[str], language: str) -> ScoreText:
    """Prepare references for exact match."""
    del language
    return lambda texts: measure(ExactMatch([references]), texts).score


def score_cer(references: Sequence[str], language: str) -> ScoreText:
    """Prepare references for the character error rate."""
    del language
    return lambda texts: measure(CharacterErrorRate([references]), texts).score


def _bleu(references: Sequence[str], language: str) -> BLEU:
    """Create sacreBLEU's BLEU with the tokenizer of a language."""
    return BLEU(force=True, tokenize=bleu_tokenizer(language), references=[references])
