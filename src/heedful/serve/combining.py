"""One translation made of those of several sentences."""

from collections.abc import Sequence
from dataclasses import replace

from heedful.serve.text.markup import Markup
from heedful.serve.text.sentences import Layout
from heedful.workflow.note import Alignment
from heedful.workflow.translation import Translation


def combined(translations: Sequence[Translation], layout: Layout | Markup) -> Translation:
    """
    Make one translation of those of several sentences.

    Parameters
    ----------
    translations : sequence of Translation
        In order, at least one.
    layout : Layout or Markup
        What stood around them.

    Returns
    -------
    Translation
        Its logarithms are the sums of theirs, its k-th alternative is made of their k-th.

    Notes
    -----
    A sentence with fewer alternatives stays with its last.
    """
    more = max(len(one.alternatives) for one in translations)
    each = [
        [one, *one.alternatives, *[(one, *one.alternatives)[-1]] * (more - len(one.alternatives))]
        for one in translations
    ]
    best, *others = (_sum([row[rank] for row in each], layout) for rank in range(more + 1))
    return replace(best, alternatives=tuple(others))


def _sum(translations: Sequence[Translation], layout: Layout | Markup) -> Translation:
    """Combine without alternatives."""
    texts = [one.text for one in translations]
    alignments = [one.alignment for one in translations]
    alone = len(translations) == 1
    return Translation(
        layout.fill(texts, [one.links if one else None for one in alignments]),
        sum(one.score for one in translations),
        tuple(token for one in translations for token in one.tokens),
        sum(one.log_probability for one in translations),
        attention=translations[0].attention if alone else None,
        alignment=_joined([one for one in alignments if one]) if all(alignments) else None,
        log_probabilities=tuple(
            number for one in translations for number in one.log_probabilities[: len(one.tokens)]
        ),
    )


def _joined(alignments: Sequence[Alignment]) -> Alignment:
    """Count the words of several sentences on."""
    source: list[str] = []
    target: list[str] = []
    links: list[tuple[int, int]] = []
    for one in alignments:
        links += [(len(source) + i, len(target) + j) for i, j in one.links]
        source += one.source_words
        target += one.target_words
    return Alignment(tuple(source), tuple(target), tuple(links))


def untagged(translation: Translation, tag: str) -> Translation:
    """
    Take the language tag out of the words of the source.

    Parameters
    ----------
    translation : Translation
        Of a sentence that began with a tag.
    tag : str
        Such as ``>>fra<<``; empty for none.

    Returns
    -------
    Translation
        As if the sentence had had no tag, its alternatives too.

    Notes
    -----
    Only an alignment knows of it.
    """
    alignment = translation.alignment
    if not tag or alignment is None or alignment.source_words[:1] != (tag,):
        return translation
    links = tuple((i - 1, j) for i, j in alignment.links if i > 0)
    others = tuple(untagged(other, tag) for other in translation.alternatives)
    without = Alignment(alignment.source_words[1:], alignment.target_words, links)
    return replace(translation, alignment=without, alternatives=others)
