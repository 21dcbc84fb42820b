"""
Scores of translated text: sacreBLEU's metrics, exact match and character error rate.

Every score carries its signature, the line that states how it was computed. Two scores may be
compared if their signatures agree (Post 2018, “A Call for Clarity in Reporting BLEU Scores”).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from heedful.errors import TextError
from heedful.evaluation.languages import bleu_tokenizer, check_language, language_code
from heedful.evaluation.line_metrics import CharacterErrorRate, ExactMatch, References
from heedful.evaluation.sufficient_statistics import MetricScore, measure


@dataclass(frozen=True)
class Scores:  # numpydoc ignore=PR02
    """Scores of one text."""

    bleu: MetricScore
    """Corpus BLEU (Papineni et al. 2002); higher is better."""
    chrf: MetricScore
    """Corpus chrF2, the F-score of character n-grams (Popović 2015); higher is better."""
    ter: MetricScore
    """Translation edit rate (Snover et al. 2006); lower is better."""
    exact_match: MetricScore
    """Percentage of translations that equal a reference; higher is better."""
    cer: MetricScore
    """Character error rate; lower is better."""

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Convert to plain values."""
        return {name: metric.to_dict() for name, metric in vars(self).items()}


def evaluate_texts(
    hypotheses: Sequence[str],
    references: References,
    *,
    language: str = "",
    lowercase: bool = False,
) -> Scores:
    """
    Score translations by BLEU, chrF, TER, exact match and character error rate.

    `language`: code of the target language. Chinese, Japanese and Korean have their own tokenizers.
    Thai, Lao, Khmer, Burmese, Tibetan and Dzongkha are split into characters, and all other
    languages use the tokenizer 13a. A region or script (``zh-TW``) is ignored.

    Other options are sacreBLEU's defaults: exponential smoothing for BLEU, character order 6 and
    beta 2 for chrF, and TER without regard to case. TER of Chinese and Japanese treats characters
    as words. If the tokenizer of the language is not installed, BLEU is computed on characters, and
    a warning names the extra to install.

    Raises `TextError` if there are no lines, the numbers of lines differ, or the language code is
    invalid.
    """
    check_language(language)
    _check_counts(hypotheses, references)
    metrics = text_metrics(references, language=language, lowercase=lowercase)
    measured = {name: measure(metric, hypotheses) for name, metric in metrics.items()}
    return Scores(**{name: MetricScore(m.score, m.signature) for name, m in measured.items()})


def text_metrics(
    references: References, *, language: str = "", lowercase: bool = False
) -> dict[str, Metric]:
    """Prepare the five metrics for translations of one text."""
    # See `evaluate_texts` for the settings. TER of Chinese and Japanese treats characters as words.
    # The references are prepared once for all systems.
    unspaced = language_code(language) in ("ja", "zh")
    return {
        "bleu": bleu_metric(references, language=language, lowercase=lowercase),
        "chrf": CHRF(lowercase=lowercase, references=references),
        "ter": TER(normalized=unspaced, asian_support=unspaced, references=references),
        "exact_match": ExactMatch(references, lowercase=lowercase),
        "cer": CharacterErrorRate(references, lowercase=lowercase),
    }


def bleu_metric(references: References, *, language: str = "", lowercase: bool = False) -> BLEU:
    """Prepare BLEU with the tokenizer of a language."""
    return BLEU(lowercase=lowercase, tokenize=bleu_tokenizer(language), references=references)


def _check_counts(hypotheses: Sequence[str], references: References) -> None:
    """Refuse empty texts and texts of different lengths."""
    if any(isinstance(reference, str) for reference in references):
        raise TypeError("references must be a list of reference sets, each a list of lines")
    if not hypotheses or not references:
        missing = "hypotheses" if not hypotheses else "references"
        raise TextError(
            "A score needs at least one hypothesis and one reference, but there are no "
            f"{missing}; name the right files."
        )
    for number, reference in enumerate(references, start=1):
        if len(reference) != len(hypotheses):
            raise TextError(
                f"Every translated line needs its reference, but there are {len(hypotheses)} "
                f"hypotheses and {len(reference)} lines in reference set {number} of "
                f"{len(references)}; give files that are aligned line by line."
            )
