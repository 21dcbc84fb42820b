"""
Two sets of translations side by side: how sure their difference is, and where they differ most.

Words on one pair of texts; which models wrote them is not this module's business.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby

from sacrebleu.metrics.chrf import CHRF

from heedful.evaluation.bleu import text_metrics
from heedful.evaluation.significance import Resampling, compare
from heedful.evaluation.sufficient_statistics import measure

# Scripts that put no spaces between words are compared letter by letter.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\u0e00-\u0e7f"
_WORD = re.compile(rf"[{_UNSPACED}]\s*|[^\s{_UNSPACED}]+\s*")


@dataclass(frozen=True)
class PairedScore:
    """
    Hold one score of both runs.

    Attributes
    ----------
    name : str
        Of the metric.
    scores : tuple of float
        In percent.
    p_value : float
        Probability that such a difference comes about by chance.
    signature : str
        How the scores were made, in sacreBLEU's notation.

    Notes
    -----
    See `heedful.evaluation.significance`.
    """

    name: str
    scores: tuple[float, float]
    p_value: float
    signature: str


@dataclass(frozen=True)
class ComparedSentence:
    """
    Hold a sentence that the runs translate differently.

    Attributes
    ----------
    line : int
        Its number in the source file, from 1.
    source : str
        What was translated.
    references : tuple of str
        How people translated it.
    translations : tuple of str
        How the runs did.
    chrf : tuple of float
        Sentence chrF of both translations, in percent.

    Notes
    -----
    Sentence chrF agrees with people better than sentence BLEU does (Popović 2015).
    """

    line: int
    source: str
    references: tuple[str, ...]
    translations: tuple[str, str]
    chrf: tuple[float, float]


def paired_scores(
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[Sequence[str]],
    language: str,
) -> tuple[PairedScore, ...]:
    """
    Score two sets of translations and ask whether the difference is more than chance.

    Parameters
    ----------
    first, second : sequence of str
        The translations of both runs.
    references : sequence of sequences of str
        One or more sets of references.
    language : str
        Code of the target language; chooses BLEU's tokeniser where that matters.

    Returns
    -------
    tuple of PairedScore
        BLEU and chrF.

    Notes
    -----
    By approximate randomisation, as `heedful evaluate --against` does.
    """
    metrics = text_metrics(references, language=language)
    found = []
    for key, name in (("bleu", "BLEU"), ("chrf", "chrF")):
        one, other = (measure(metrics[key], texts) for texts in (first, second))
        tested = compare([one], [other])[0]
        signature = f"{one.signature}|ar:{Resampling().trials}|seed:{Resampling().seed}"
        found.append(PairedScore(name, (one.score, other.score), tested.p_value, signature))
    return tuple(found)


def most_different(
    sources: Sequence[str],
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[Sequence[str]],
) -> tuple[ComparedSentence, ...]:
    """
    Sort the sentences that are translated differently by how much worse one translation is.

    Parameters
    ----------
    sources : sequence of str
        What was translated.
    first, second : sequence of str
        The translations.
    references : sequence of sequences of str
        One or more sets of references.

    Returns
    -------
    tuple of ComparedSentence
        Largest difference of sentence chrF first; equal translations are left out.

    Notes
    -----
    Equal differences stay in the order of the text.
    """
    metric = CHRF()
    sentences = []
    for index, both in enumerate(zip(first, second, strict=True)):
        if both[0] == both[1]:
            continue
        right = tuple(lines[index] for lines in references)
        chrf = [float(metric.sentence_score(text, list(right)).score) for text in both]
        sentences.append(
            ComparedSentence(index + 1, sources[index], right, both, (chrf[0], chrf[1]))
        )
    sentences.sort(key=lambda sentence: -abs(sentence.chrf[0] - sentence.chrf[1]))
    return tuple(sentences)


def mark_differences(first: str, second: str) -> tuple[str, str]:
    """
    Put what one sentence says otherwise than another in square brackets.

    Parameters
    ----------
    first, second : str
        Two translations of a sentence.

    Returns
    -------
    tuple of str
        Both, with brackets around runs of words that the other one lacks.

    Notes
    -----
    By the longest common runs of words (`difflib`), not by letters, so that what is marked can be
    read.

    Examples
    --------
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
    """Write words with brackets around those that found no partner."""
    text = ""
    for is_matched, group in groupby(enumerate(words), lambda word: word[0] in matched):
        part = "".join(word for _, word in group)
        end = part[len(part.rstrip()) :]
        text += part if is_matched else f"[{part.rstrip()}]{end}"
    return text.rstrip()
