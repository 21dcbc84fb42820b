"""
Paired comparison of two systems: significance, and the sentences that differ most.

The module compares two texts, whatever models wrote them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby

from sacrebleu.metrics.chrf import CHRF

from heedful.evaluation.bleu import text_metrics
from heedful.evaluation.line_metrics import References
from heedful.evaluation.significance import Resampling, compare
from heedful.evaluation.sufficient_statistics import measure

# Text in scripts without spaces between words is compared letter by letter.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\u0e00-\u0e7f"
_COMPARED = {"bleu": "BLEU", "chrf": "chrF", "exact_match": "exact match", "cer": "CER"}
_WORD = re.compile(rf"[{_UNSPACED}]\s*|[^\s{_UNSPACED}]+\s*")


@dataclass(frozen=True)
class PairedScore:
    """The scores of both systems by one metric."""

    name: str
    """Name of the metric."""
    scores: tuple[float, float]
    """Scores of both systems, in percent."""
    p_value: float
    """Probability that chance alone produces a difference at least as large as the observed one."""
    signature: str
    """How the scores were computed, in sacreBLEU's notation."""


@dataclass(frozen=True)
class ComparedSentence:
    """
    A sentence that the systems translate differently.

    Sentence chrF agrees with human judgment better than sentence BLEU does (Popović 2015).
    """

    line: int
    """Line number in the source text, from 1."""
    source: str
    """The source sentence."""
    references: tuple[str, ...]
    """Reference translations."""
    translations: tuple[str, str]
    """Translations of both systems."""
    chrf: tuple[float, float]
    """Sentence chrF of both translations, in percent."""


def paired_scores(
    first: Sequence[str],
    second: Sequence[str],
    references: References,
    language: str,
) -> tuple[PairedScore, ...]:
    """Score two sets of translations and test the significance of the difference."""
    metrics = text_metrics(references, language=language)
    results = []
    for key, name in _COMPARED.items():
        ours, theirs = (measure(metrics[key], texts) for texts in (first, second))
        tested = compare([ours], [theirs])[0]
        signature = f"{ours.signature}|ar:{Resampling().trials}|seed:{Resampling().seed}"
        results.append(PairedScore(name, (ours.score, theirs.score), tested.p_value, signature))
    return tuple(results)


def most_different(
    sources: Sequence[str],
    first: Sequence[str],
    second: Sequence[str],
    references: References,
    lines: Sequence[int],
) -> tuple[ComparedSentence, ...]:
    """
    List the sentences that are translated differently, the largest difference in score first.

    `lines`: the index of each sentence in the source text.
    """
    metric = CHRF()
    sentences = []
    for index, both in enumerate(zip(first, second, strict=True)):
        if both[0] == both[1]:
            continue
        right = tuple(side[index] for side in references if side[index] is not None)
        chrf = [float(metric.sentence_score(text, list(right)).score) for text in both]
        sentences.append(
            ComparedSentence(lines[index] + 1, sources[index], right, both, (chrf[0], chrf[1]))
        )
    sentences.sort(key=lambda sentence: -abs(sentence.chrf[0] - sentence.chrf[1]))
    return tuple(sentences)


def mark_differences(first: str, second: str) -> tuple[str, str]:
    """
    Mark, in square brackets, the words in which two sentences differ.

    The comparison uses the longest common runs of words (`difflib`), so that the marks are
    readable; in Chinese, Japanese and Thai script, each character is a word.

    >>> mark_differences("le gros chien rouge dort", "le chien vert foncé dort")
    ('le [gros] chien [rouge] dort', 'le chien [vert foncé] dort')
    """
    words = _WORD.findall(first), _WORD.findall(second)
    bare_first, bare_second = ([word.rstrip() for word in side] for side in words)
    blocks = SequenceMatcher(None, bare_first, bare_second, autojunk=False).get_matching_blocks()
    matched_first = {block.a + offset for block in blocks for offset in range(block.size)}
    matched_second = {block.b + offset for block in blocks for offset in range(block.size)}
    return _bracket(words[0], matched_first), _bracket(words[1], matched_second)


def _bracket(words: Sequence[str], matched: set[int]) -> str:
    """Put unmatched words in brackets."""
    text = ""
    for is_matched, group in groupby(enumerate(words), lambda word: word[0] in matched):
        part = "".join(word for _, word in group)
        end = part[len(part.rstrip()) :]
        text += part if is_matched else f"[{part.rstrip()}]{end}"
    return text.rstrip()
