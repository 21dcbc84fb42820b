"""Joining of translated sentences into the translation of their text."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from heedful.translation.result import Translation, WordAlignment

Fill = Callable[[Sequence[str], Sequence[Iterable[tuple[int, int]] | None]], str]
"""Replaces the sentences of a text with their translations, using word links if it needs them."""


def join_sentences(translations: Sequence[Translation], fill: Fill) -> Translation:
    """
    Join the translations of several sentences.

    `translations`: in order, at least one. `fill`: inserts them into their text.

    A sentence with fewer alternatives than another repeats its last translation.
    """
    most = max(len(sentence.alternatives) for sentence in translations)
    ranked = [[sentence, *sentence.alternatives] for sentence in translations]
    rows = [[*row, *[row[-1]] * (most + 1 - len(row))] for row in ranked]
    best, *others = (_sum([row[rank] for row in rows], fill) for rank in range(most + 1))
    return replace(best, alternatives=tuple(others))


def _sum(translations: Sequence[Translation], fill: Fill) -> Translation:
    """Join translations, without their alternatives."""
    texts = [sentence.text for sentence in translations]
    alignments = [sentence.alignment for sentence in translations]
    return Translation(
        fill(texts, [links.links if links else None for links in alignments]),
        sum(sentence.score for sentence in translations),
        tuple(token for sentence in translations for token in sentence.tokens),
        sum(sentence.log_probability for sentence in translations),
        attention=translations[0].attention if len(translations) == 1 else None,
        alignment=_join_links([links for links in alignments if links])
        if all(alignments)
        else None,
        log_probabilities=tuple(
            number
            for sentence in translations
            for number in sentence.log_probabilities[: len(sentence.tokens)]
        ),
        replaced_controls=sum(sentence.replaced_controls for sentence in translations),
    )


def _join_links(alignments: Sequence[WordAlignment]) -> WordAlignment:
    """Join the links, with words numbered consecutively across all sentences."""
    source: list[str] = []
    target: list[str] = []
    links: list[tuple[int, int]] = []
    for sentence in alignments:
        links += [(len(source) + i, len(target) + j) for i, j in sentence.links]
        source += sentence.source_words
        target += sentence.target_words
    return WordAlignment(tuple(source), tuple(target), tuple(links))
