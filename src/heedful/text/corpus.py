"""
Sentence pairs from text files.

Line n of the source corresponds to line n of the target. `heedful.text.file_formats` defines the
lines of each kind of file.
"""

import glob
import os
import re
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import chain, compress
from pathlib import Path

from heedful.arguments import WRITE_SENTENCES
from heedful.errors import TextError
from heedful.text.file_formats import TextSource, read_rows, restrict_to, same_file, split_name
from heedful.text.skipped_rows import SkippedRows

Change = Callable[[Iterator[tuple[str, str]]], Iterator[tuple[str, str]]]
"""A function that changes pairs as they are read."""

_SHOWN = 60
# A file name with a suffix, and perhaps a part. Any other text counts as a sentence if it has a
# blank, final punctuation or a character that is not ASCII.
_FILE_NAME = re.compile(r"\.[\w-]{1,12}(:[\w:+-]+)?$")
_SENTENCE = re.compile(r"\s|[.!?…。！？]$|[^\x00-\x7f]")


def expand(patterns: Sequence[str | Path]) -> list[TextSource]:
    """
    Resolve file names and glob patterns to texts.

    Returns the texts in the order of `patterns`, sorted by name within a pattern.

    A name that exists is taken literally, even with a glob character. A file named twice is read
    twice, which gives it more weight. Pipes are refused because training reads its text more than
    once.

    Raises `TextError` if nothing was given, a file is missing or not regular, or a pattern matches
    no file. Also raises it if a suffix shows that a file is not text, or if a column, field,
    language or side is missing or superfluous.
    """
    if not patterns:
        raise TextError("At least one text file must be given, but none was.")
    for pattern in map(str, patterns):
        _refuse_sentence(pattern)
    named = [split_name(str(pattern)) for pattern in patterns]
    return [TextSource(path, part) for file, part in named for path in _expand_one(file)]


def one_file(pattern: str | Path) -> TextSource:
    """Resolve a name to exactly one text. Raises `TextError` if there is none or more than one."""
    texts = expand([pattern])
    if len(texts) != 1:
        raise TextError(f"{pattern} must name one file, but names {len(texts)}.")
    return texts[0]


def read_lines(file: TextSource | Path, skipped: SkippedRows | None = None) -> Iterator[str]:
    """
    Read a text line by line.

    `skipped`: counts the rows of a table that lack text, or refuses them.

    Only one line is in memory at a time.

    Raises `TextError` if the file cannot be opened, is damaged, or does not hold text of its
    format.
    """
    text = _text(file)
    if isinstance(text, CorpusSide):
        yield from text.lines()
        return
    for (line,) in read_rows(text.path, [text.part], skipped):
        yield text.marked(line)


def language_of(file: TextSource | Path) -> str:
    """
    Return the part of a text's name that may be a language code; empty if there is none.

    >>> language_of(Path("train.en.gz"))
    'en'
    >>> language_of(TextSource(Path("memory.tmx"), "en"))
    'en'
    """
    return _text(file).language


class Corpus:
    """Source and target text, aligned by line; raises `TextError` if both are the same text."""

    def __init__(
        self, source: Sequence[TextSource | Path], target: Sequence[TextSource | Path]
    ) -> None:
        self.source = tuple(map(_text, source))
        self.target = tuple(map(_text, target))
        self.skipped = SkippedRows()
        """Rows of tables that the last call to `pairs` left out."""
        if len(source) == len(target):
            pairs = list(zip(self.source, self.target, strict=True))
            self.source = tuple(restrict_to(first, second) for first, second in pairs)
            self.target = tuple(restrict_to(second, first) for first, second in pairs)
            for source_text, target_text in pairs:
                _refuse_same(source_text, target_text)
        self._change: Change | None = None

    def changed(self, change: Change) -> "Corpus":
        """Return a corpus whose pairs pass through `change`, which keeps their number and order."""
        corpus, before = copy(self), self._change
        corpus._change = change if before is None else lambda pairs: change(before(pairs))
        return corpus

    def with_characters_read(self) -> "Corpus":
        """Return the same corpus with its characters normalized like text to be translated."""
        corpus = copy(self)
        corpus.source = tuple(replace(text, read_as="source") for text in self.source)
        corpus.target = tuple(replace(text, read_as="target") for text in self.target)
        return corpus

    def pairs(self) -> Iterator[tuple[str, str]]:
        """
        Iterate over the sentence pairs in order.

        Every call reads the files again. A file with both sides is read once per call, and rows
        that lack one side are left out. A difference in length is found only at the end of the
        shorter side.

        Raises `TextError` if the sides differ in their number of lines, contain no line, or cannot
        be read.
        """
        pairs = self._read()
        return pairs if self._change is None else self._change(pairs)

    def _read(self) -> Iterator[tuple[str, str]]:
        """Read the pairs of the files."""
        self.skipped = skipped = SkippedRows()
        parts = [(self.source, self.target)]
        if len(self.source) == len(self.target):
            parts = [((s,), (t,)) for s, t in zip(self.source, self.target, strict=True)]
        empty = True
        for pair in chain.from_iterable(_iterate_aligned(*part, skipped) for part in parts):
            empty = False
            yield pair
        if empty:
            raise TextError(
                f"The text must hold at least one line, but {_names(self.source)} and "
                f"{_names(self.target)} are empty; give files with sentences."
            )

    def sides(self, mask: Sequence[int]) -> tuple["CorpusSide", "CorpusSide"]:
        """Return both sides of selected pairs as texts. `mask`: 1 for a selected pair, else 0."""
        source, target = (
            CorpusSide(texts[0].path, texts[0].part, corpus=self, number=number, kept=mask)
            for number, texts in enumerate((self.source, self.target))
        )
        return source, target


@dataclass(frozen=True, eq=False)
class CorpusSide(TextSource):  # numpydoc ignore=PR02
    """One side of selected pairs of a corpus, with language tags and the name of the first file."""

    corpus: Corpus = field(kw_only=True)
    number: int = field(kw_only=True)
    """0 for the source, 1 for the target."""
    kept: Sequence[int] = field(kw_only=True)
    """1 for each pair that belongs to the text, else 0."""

    def lines(self) -> Iterator[str]:
        """Read the lines."""
        return (pair[self.number] for pair in compress(self.corpus.pairs(), self.kept))


def _refuse_sentence(name: str) -> None:
    """Refuse a sentence where the name of a file is expected."""
    if _FILE_NAME.search(name) or not _SENTENCE.search(name) or split_name(name)[1]:
        return
    if os.path.exists(name) or (glob.has_magic(name) and glob.glob(name)):
        return
    shown = " ".join(name.split())
    raise TextError(
        "Text must be given as files, but there is no file "
        f"“{shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}”; correct the name, "
        f"or {WRITE_SENTENCES}."
    )


def _refuse_same(source: TextSource, target: TextSource) -> None:
    """Refuse one text as both source and target, even if it has two names."""
    if source.part.lower() != target.part.lower():
        return
    try:
        same = os.path.samefile(source.path, target.path)
    except OSError:  # a missing file is reported when it is read
        return
    if same:
        alike = f"{source} and {target} are the same file"
        raise TextError(
            "Source and target must be two texts, but "
            f"{f'got {source} for both' if str(source) == str(target) else alike}; give the "
            "translation of the source, or a copy of the file if both texts are intentionally "
            "equal."
        )


def _expand_one(pattern: str) -> list[Path]:
    """Resolve one file name or pattern to paths; `pattern` names no part of a file."""
    path = Path(pattern)
    try:
        if path.is_file():
            return [path]
        exists = path.exists()
    except OSError as error:
        raise TextError(
            f"{path} must be a text file that can be read, but the system says "
            f"“{error.strerror or error}”; correct the name or the permissions."
        ) from error
    except ValueError as error:
        raise TextError(f"{pattern!r} must be a file name, but is not: {error}.") from error
    if exists:
        kind = "a folder" if path.is_dir() else "a pipe or a device"
        raise TextError(
            f"{path} must be a text file, but it is {kind}; name a file, or write a pattern such "
            "as “corpus/*.en.gz”."
        )
    if not glob.has_magic(pattern):
        hint = "" if _FILE_NAME.search(str(path)) else f", or {WRITE_SENTENCES}"
        raise TextError(
            f"The text file {path} must exist, but it does not; correct the name{hint}."
        )
    paths = [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]
    paths = [path for path in paths if path.is_file()]
    if not paths:
        raise TextError(
            f"The pattern {pattern} must match at least one text file, but it matches none; "
            "correct the pattern."
        )
    return paths


def _text(file: TextSource | Path) -> TextSource:
    """Convert a path to a text source; a text source is returned as it is."""
    return file if isinstance(file, TextSource) else TextSource(Path(file))


def _iterate_aligned(
    source: tuple[TextSource, ...], target: tuple[TextSource, ...], skipped: SkippedRows
) -> Iterator[tuple[str, str]]:
    """Iterate over the lines of both sides together; refuse sides of different lengths."""
    if len(source) == len(target) == 1 and same_file(source[0], target[0]):
        rows = read_rows(source[0].path, [source[0].part, target[0].part], skipped)
        yield from ((source[0].marked(row[0]), target[0].marked(row[1])) for row in rows)
        return
    strict = SkippedRows(refuse=True)
    sources = chain.from_iterable(read_lines(text, strict) for text in source)
    targets = chain.from_iterable(read_lines(text, strict) for text in target)
    count = 0
    for line in sources:
        # zip() would consume one line of the longer side, which would then not be counted.
        partner = next(targets, None)
        if partner is None:
            longer = count + 1 + sum(1 for _ in sources)
            raise _unequal(source, longer, target, count)
        yield line, partner
        count += 1
    rest = sum(1 for _ in targets)
    if rest:
        raise _unequal(source, count, target, count + rest)


def _unequal(
    source: tuple[TextSource, ...],
    source_lines: int,
    target: tuple[TextSource, ...],
    target_lines: int,
) -> TextError:
    """Build the error with the names and line counts of both sides."""
    return TextError(
        "Source and target must have the same number of lines, but "
        f"{_names(source)} has {source_lines:,} and {_names(target)} has {target_lines:,}; "
        "line n of one must translate line n of the other."
    )


def _names(texts: tuple[TextSource, ...]) -> str:
    """Name a side of the corpus for a message."""
    if len(texts) <= 3:
        return " + ".join(map(str, texts))
    return f"{texts[0]} + … + {texts[-1]} ({len(texts)} files)"
