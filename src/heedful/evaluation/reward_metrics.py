"""
Metrics for single sentences, from 0 to 1, that can serve as rewards in training.

They compare detokenized text, not subwords. For GLEU and BLEU, sacreBLEU's tokenizer for the
language splits it into words.
"""

from collections.abc import Callable, Sequence
from functools import cache

from sacrebleu.metrics.bleu import BLEU

from heedful.errors import SettingError
from heedful.evaluation.gleu import sentence_gleu
from heedful.evaluation.languages import bleu_tokenizer, is_language, written_language
from heedful.evaluation.mbr_utility import Table, bleu_table, chrf_table

REWARD_METRICS = ("gleu", "bleu", "chrf")

SentenceMetric = Callable[[Sequence[str], str], list[float]]
"""Maps translations of a sentence, and its reference, to a number from 0 to 1 per translation."""


def reward_metric(name: str, language: str = "") -> SentenceMetric:
    """
    Return a metric by name.

    `language`: code of the translations' language; if it is not a code, as with a file extension
    such as .trg, the script of each reference decides.

    BLEU is smoothed exponentially and uses only the n-gram orders that the translation has. Raises
    `SettingError` for an unknown name.
    """
    if name not in REWARD_METRICS:
        raise SettingError(f"a reward must be {' or '.join(REWARD_METRICS)}, but is {name!r}.")
    if is_language(language):
        return _metric(name, language)
    return lambda texts, reference: _metric(name, written_language([reference]))(texts, reference)


@cache
def _metric(name: str, language: str) -> SentenceMetric:
    """Return a metric for a language."""
    # with a code, the warning of a missing tokenizer comes before training
    tokenizer = bleu_tokenizer(language)
    if name == "bleu":
        return lambda texts, reference: _column(bleu_table(texts, [reference], language))
    if name == "chrf":
        return lambda texts, reference: _column(chrf_table(texts, [reference]))
    cut = BLEU(tokenize=tokenizer).tokenizer

    def gleu(texts: Sequence[str], reference: str) -> list[float]:
        words = cut(reference.rstrip()).split()
        return [sentence_gleu(cut(text.rstrip()).split(), words) for text in texts]

    return gleu


def _column(table: Table) -> list[float]:
    """Return the only column of a table of percentages, as fractions."""
    return [float(score) / 100.0 for score in table[:, 0]]
