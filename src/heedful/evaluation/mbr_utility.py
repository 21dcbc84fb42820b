"""
Utility matrices for minimum Bayes risk decoding.

Every translation is compared with every reference, so the n-grams of each text are extracted only
once, not again for every pair. The k-th occurrence of an n-gram in a text is a feature of its own.
The number of n-grams that two texts share, a sum of minima, is then the dot product of two vectors
of zeros and ones. The numbers for all pairs are the product of two matrices.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from heedful.errors import SettingError
from heedful.evaluation.languages import bleu_tokenizer

# Number of zeros and ones that are multiplied at once.
_CHUNK = 1 << 22

Table = Float[np.ndarray, "translations references"]


def chrf_table(translations: Sequence[str], references: Sequence[str]) -> Table:
    """Compute the chrF of every translation against every reference."""
    # Equal to sacreBLEU's sentence chrF2 (Popović 2015): character order 6, spaces left out, means
    # of precision and recall over the orders that both texts have.
    chrf = CHRF()
    ones, others = _letters(translations), _letters(references)
    precision, recall, orders = (np.zeros((len(ones), len(others))) for _ in range(3))
    for order in range(1, chrf.char_order + 1):
        matches, of_ones, of_others = _matches(ones, others, order)
        both = (of_ones[:, None] > 0) & (of_others > 0)
        precision += matches / np.maximum(of_ones[:, None], 1)
        recall += matches / np.maximum(of_others, 1)
        orders += both
    precision, recall = precision / np.maximum(orders, 1), recall / np.maximum(orders, 1)
    factor = chrf.beta**2
    weighted = factor * precision + recall
    return 100 * (1 + factor) * precision * recall / np.where(weighted > 0, weighted, 1)


def bleu_table(translations: Sequence[str], references: Sequence[str], language: str = "") -> Table:
    """Compute the BLEU of every translation against every reference."""
    # Equal to sacreBLEU's sentence BLEU: the tokenizer of the language, exponential smoothing, and
    # only the orders that the translation has.
    bleu = BLEU(effective_order=True, tokenize=bleu_tokenizer(language))
    ones, others = (
        [tuple(bleu.tokenizer(text.rstrip()).split()) for text in texts]
        for texts in (translations, references)
    )
    counts = [_matches(ones, others, order) for order in range(1, bleu.max_ngram_order + 1)]
    table = np.zeros((len(ones), len(others)))
    for i, translation in enumerate(ones):
        for j, reference in enumerate(others):
            score = bleu.compute_bleu(
                [int(matches[i, j]) for matches, _, _ in counts],
                [int(totals[i]) for _, totals, _ in counts],
                sys_len=len(translation),
                ref_len=len(reference),
                smooth_method="exp",
                effective_order=True,
            )
            table[i, j] = score.score
    return table


UTILITIES: dict[str, Callable[[Sequence[str], Sequence[str]], Table]] = {
    "chrf": chrf_table,
    "bleu": bleu_table,
}
"""Utility functions by name."""


def utility(name: str, language: str = "") -> Callable[[Sequence[str], Sequence[str]], Table]:
    """
    Return a utility function by name.

    Raises `SettingError` for an unknown name. chrF is the better choice: it distinguishes
    translations that share few whole words.
    """
    if name not in UTILITIES:
        raise SettingError(f"a utility must be {' or '.join(UTILITIES)}, but is {name!r}.")
    return partial(bleu_table, language=language) if name == "bleu" else UTILITIES[name]


def _letters(texts: Sequence[str]) -> list[tuple[str, ...]]:
    """Split texts into characters without spaces."""
    return [tuple("".join(text.split())) for text in texts]


def _matches(
    ones: Sequence[Sequence[str]], others: Sequence[Sequence[str]], order: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count the n-grams that each pair shares, and the n-grams of each text."""
    features: dict[tuple[tuple[str, ...], int], int] = {}
    rows, columns, totals = [], [], []
    for row, text in enumerate([*ones, *others]):
        seen: Counter[tuple[str, ...]] = Counter()
        for start in range(len(text) - order + 1):
            gram = tuple(text[start : start + order])
            seen[gram] += 1
            rows.append(row)
            columns.append(features.setdefault((gram, seen[gram]), len(features)))
        totals.append(max(0, len(text) - order + 1))
    middle = len(ones)
    matches = np.zeros((middle, len(others)))
    by_feature = np.argsort(columns, kind="stable")
    row_of, feature_of = np.array(rows, dtype=int)[by_feature], np.sort(columns)
    width = max(1, min(len(features), _CHUNK // max(1, len(totals))))
    for first in range(0, len(features), width):
        here = slice(*np.searchsorted(feature_of, (first, first + width)))
        present = np.zeros((len(totals), width), dtype=np.float32)
        present[row_of[here], feature_of[here] - first] = 1.0
        matches += present[:middle] @ present[middle:].T
    return matches, np.array(totals[:middle]), np.array(totals[middle:])
