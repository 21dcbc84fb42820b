"""Pairs of sentences that a Python function takes: as files, or in memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike, fspath
from typing import Any

from heedful.errors import ArgumentError
from heedful.text.corpus import Corpus, expand
from heedful.text.pairs import PairRows

Files = str | PathLike[str] | Sequence[str | PathLike[str]]
"""One file or several, by name or pattern."""
Pairs = Iterable[Any]
"""Sentences in memory with their translations, in any form that `PairRows` reads."""


def sentence_pairs(
    owner: str,
    source: Files | None,
    target: Files | None,
    pairs: Pairs | None,
    warn: Callable[[str], object] | None = None,
    languages: Sequence[str] = ("", ""),
) -> Iterator[tuple[str, str]]:
    """
    Iterate over the pairs of two texts, or over pairs in memory.

    `owner`: the function's name, for messages. `languages`: source and target language; a table's
    columns may have these names. `warn`: called at the end with notes on how files were read and
    which rows were skipped.
    """
    if pairs is not None and source is None and target is None:
        return pairs_in_memory(pairs, languages)
    if pairs is not None or source is None or target is None:
        raise ArgumentError(
            f"{owner} needs either files, as `source` and `target`, or sentences, as `pairs`."
        )
    corpus = Corpus(tuple(expand(file_list(source))), tuple(expand(file_list(target))))
    return _corpus_pairs(corpus, warn)


def _corpus_pairs(
    corpus: Corpus, warn: Callable[[str], object] | None
) -> Iterator[tuple[str, str]]:
    """Iterate over the pairs of a corpus, and report the skipped rows at the end."""
    yield from corpus.pairs()
    for note in corpus.skipped.notes():
        if warn is not None:
            warn(note)


def file_list(files: Files) -> list[str]:
    """List the names of one file or of several."""
    names = [files] if isinstance(files, str | PathLike) else files
    return [fspath(name) for name in names]


def pairs_in_memory(pairs: Pairs, languages: Sequence[str] = ("", "")) -> Iterator[tuple[str, str]]:
    """Iterate over pairs of strings or the rows of a table. `languages`: source, target."""
    yield from PairRows("pairs", pairs).read(*languages)
