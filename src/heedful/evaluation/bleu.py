"""
Scores of translated text, as sacreBLEU computes them.

Every score carries its signature, the line that says how it was made; two figures may be compared
when their signatures agree (Post 2018, “A Call for Clarity in Reporting BLEU Scores”).
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
from heedful.evaluation.sufficient_statistics import MetricScore, measure


@dataclass(frozen=True)
class Scores:  # numpydoc ignore=PR02
    """
    What sacreBLEU says about a set of translations.

    Attributes
    ----------
    bleu : MetricScore
        Corpus BLEU (Papineni et al. 2002); higher is better.
    chrf : MetricScore
        Corpus chrF2, the F-score of character n-grams (Popović 2015); higher is better.
    ter : MetricScore
        Translation edit rate (Snover et al. 2006); lower is better.
    """

    bleu: MetricScore
    chrf: MetricScore
    ter: MetricScore

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """
        Give the scores as plain values.

        Returns
        -------
        dict of str to dict
            Under “bleu”, “chrf” and “ter” what each `MetricScore` gives.

        Notes
        -----
        The shape is part of the command line's contract: ``evaluate --json`` prints it.
        """
        return {name: metric.to_dict() for name, metric in vars(self).items()}


def evaluate_texts(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    language: str = "",
    lowercase: bool = False,
) -> Scores:
    """
    Score translations by BLEU, chrF and TER.

    Parameters
    ----------
    hypotheses : sequence of str
        The translations, detokenised, one line each.
    references : sequence of sequences of str
        One or more sets of references, each with one line for every hypothesis.
    language : str, default ""
        Code of the target language; Chinese, Japanese and Korean have tokenisers of their own,
        every other one is tokenised by rule 13a. A region or script (``zh-TW``) is ignored.
    lowercase : bool, default False
        Whether BLEU and chrF ignore case. TER always does.

    Returns
    -------
    Scores
        The three scores with their signatures.

    Raises
    ------
    TextError
        If there are no lines, not one reference for every hypothesis, or no such language.

    Notes
    -----
    Everything not named here is sacreBLEU's default: exponential smoothing for BLEU, character
    order 6 and beta 2 for chrF, Tercom's normalisation for TER. Where the tokeniser of the language
    is not installed, BLEU is that of characters, and a warning says which extra brings it.
    """
    check_language(language)
    _check_counts(hypotheses, references)
    metrics = text_metrics(references, language=language, lowercase=lowercase)
    measured = {name: measure(metric, hypotheses) for name, metric in metrics.items()}
    return Scores(**{name: MetricScore(m.score, m.signature) for name, m in measured.items()})


def text_metrics(
    references: Sequence[Sequence[str]], *, language: str = "", lowercase: bool = False
) -> dict[str, Metric]:
    """
    Make the three metrics ready to measure translations of one text.

    Parameters
    ----------
    references : sequence of sequences of str
        One or more sets of references, all with the same number of lines.
    language : str, default ""
        Code of the target language.
    lowercase : bool, default False
        Whether BLEU and chrF ignore case.

    Returns
    -------
    dict of str to Metric
        The metrics of sacreBLEU under “bleu”, “chrf” and “ter”.

    Notes
    -----
    See `evaluate_texts` for the settings. TER of Chinese and Japanese counts characters as words.
    The references are prepared once, for however many
    systems are measured.
    """
    unspaced = language_code(language) in ("ja", "zh")
    return {
        "bleu": bleu_metric(references, language=language, lowercase=lowercase),
        "chrf": CHRF(lowercase=lowercase, references=references),
        "ter": TER(normalized=unspaced, asian_support=unspaced, references=references),
    }


def bleu_metric(
    references: Sequence[Sequence[str]], *, language: str = "", lowercase: bool = False
) -> BLEU:
    """
    Make BLEU ready, with the tokeniser of a language.

    Parameters
    ----------
    references : sequence of sequences of str
        One or more sets of references, all with the same number of lines.
    language : str, default ""
        Code of the target language.
    lowercase : bool, default False
        Whether case is ignored.

    Returns
    -------
    BLEU
        The metric of sacreBLEU.

    Notes
    -----
    It warns of text that looks tokenised, and where the language's tokeniser is missing.
    """
    return BLEU(lowercase=lowercase, tokenize=bleu_tokenizer(language), references=references)


def corpus_bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    lowercase: bool = False,
    language: str = "",
) -> float:
    """
    Score translations by BLEU alone.

    Parameters
    ----------
    hypotheses : sequence of str
        The translations, detokenised, one line each.
    references : sequence of str
        One reference for every hypothesis.
    lowercase : bool, default False
        Whether case is ignored.
    language : str, default ""
        Code of the target language, which chooses the tokeniser.

    Returns
    -------
    float
        The score in percent.

    Raises
    ------
    TextError
        If there are no lines, or not one reference for every hypothesis.

    Notes
    -----
    One metric, no signature, no advice on the console.
    """
    _check_counts(hypotheses, [references])
    metric = BLEU(lowercase=lowercase, force=True, tokenize=bleu_tokenizer(language))
    return float(metric.corpus_score(hypotheses, [references]).score)


def _check_counts(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Refuse what has no lines or no line-by-line partner."""
    if any(isinstance(reference, str) for reference in references):
        raise TypeError("references must be a list of reference sets, each a list of lines")
    if not hypotheses or not references:
        missing = "hypotheses" if not hypotheses else "references"
        raise TextError(
            f"A score needs at least one line of translation and one of reference, but there are "
            f"no {missing}; check that the files named are the right ones and not empty."
        )
    for number, reference in enumerate(references, start=1):
        if len(reference) != len(hypotheses):
            raise TextError(
                f"Every translated line needs its reference, but there are {len(hypotheses)} "
                f"hypotheses and {len(reference)} lines in reference set {number} of "
                f"{len(references)}; give files that are aligned line by line."
            )
