"""
Text files in, sentence pairs out.

Line n of the source belongs to line n of the target. What a line is in which kind of file is said
in `heedful.text.file_formats`.
"""

import glob
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from heedful.errors import TextError
from heedful.text.file_formats import TextSource, read_rows, restricted, same_file, split_name


def expand(patterns: Sequence[str | Path]) -> list[TextSource]:
    """
    Find the texts that names and glob patterns stand for.

    Parameters
    ----------
    patterns : sequence of str or Path
        File names and glob patterns (``*``, ``?``, ``[…]``, ``**``), with the part of the file
        that is meant where its format has parts: ``corpus/*.tsv.gz:2``.

    Returns
    -------
    list of Text
        The texts in the order of `patterns`, sorted by name within a pattern.

    Raises
    ------
    TextError
        If nothing was given, a file is missing or is no regular file, a pattern matches none, or a
        part is wanted or not wanted.

    Notes
    -----
    A name that exists is taken literally, even when it holds a glob character. A file named twice
    is read twice, which is a way to weigh it. Pipes are refused because training reads its text
    more than once.
    """
    if not patterns:
        raise TextError("At least one text file must be given, and none was.")
    named = [split_name(str(pattern)) for pattern in patterns]
    return [TextSource(path, part) for file, part in named for path in _expand_one(file)]


def one_file(pattern: str | Path) -> TextSource:
    """
    Find exactly one text.

    Parameters
    ----------
    pattern : str or Path
        A file or a glob, as `expand` takes them.

    Returns
    -------
    TextSource
        The only one that it names.

    Notes
    -----
    Raises `TextError` if there is none or more than one.
    """
    found = expand([pattern])
    if len(found) != 1:
        raise TextError(f"{pattern} must name one file, but names {len(found)}.")
    return found[0]


def read_lines(file: TextSource | Path) -> Iterator[str]:
    """
    Read a text line by line.

    Parameters
    ----------
    file : TextSource or Path
        A text, or a file that is one text.

    Yields
    ------
    str
        A line without its line end.

    Raises
    ------
    TextError
        If the file cannot be opened, is damaged, or does not hold such text.

    Notes
    -----
    One line is held at a time, however long the file is.
    """
    text = _text(file)
    for (line,) in read_rows(text.path, [text.part]):
        yield text.marked(line)


def language_of(file: TextSource | Path) -> str:
    """
    Read the language off a file's ending.

    Parameters
    ----------
    file : TextSource or Path
        A text such as ``train.en``, ``train.en.gz`` or ``memory.tmx:en``.

    Returns
    -------
    str
        “en” in all three cases; empty if the name does not tell.

    Notes
    -----
    The field's habit, not a check: ``notes.txt`` gives “txt”.

    Examples
    --------
    >>> language_of(Path("train.en.gz"))
    'en'
    >>> language_of(TextSource(Path("memory.tmx"), "en"))
    'en'
    """
    return _text(file).language


class Corpus:
    """
    Source and target text whose lines belong together.

    Parameters
    ----------
    source : sequence of TextSource or Path
        The texts of the source side.
    target : sequence of TextSource or Path
        The texts of the target side. When both sides have as many, the first of the source belongs
        to the first of the target and so on; else each side is read as one long text.

    Attributes
    ----------
    source, target : tuple of TextSource
        The same, but where a translation memory gives both languages, each is restricted to the
        units that have both: the sides are aligned also when each is read alone.
    """

    def __init__(
        self, source: Sequence[TextSource | Path], target: Sequence[TextSource | Path]
    ) -> None:
        self.source = tuple(map(_text, source))
        self.target = tuple(map(_text, target))
        if len(source) == len(target):
            pairs = list(zip(self.source, self.target, strict=True))
            self.source = tuple(restricted(one, other) for one, other in pairs)
            self.target = tuple(restricted(other, one) for one, other in pairs)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """
        Read the sentence pairs in order.

        Yields
        ------
        tuple of str and str
            A source line and its target line.

        Raises
        ------
        TextError
            If the sides differ in their number of lines, hold no line, or cannot be read.

        Notes
        -----
        Every call reads the files again, one that holds both sides in one pass. The lines are
        counted while they are read, so a difference is found at the end of the shorter side.
        """
        parts = [(self.source, self.target)]
        if len(self.source) == len(self.target):
            parts = [((s,), (t,)) for s, t in zip(self.source, self.target, strict=True)]
        empty = True
        for pair in chain.from_iterable(_aligned(*part) for part in parts):
            empty = False
            yield pair
        if empty:
            raise TextError(
                f"The text must hold at least one line, but {_names(self.source)} and "
                f"{_names(self.target)} are empty; give files with sentences."
            )


def _expand_one(pattern: str) -> list[Path]:
    """Find the files of one name or pattern without a part."""
    path = Path(pattern)
    try:
        if path.is_file():
            return [path]
        exists = path.exists()
    except OSError as error:
        raise TextError(
            f"{path} must be a text file that can be read, but the system says "
            f"“{error.strerror or error}”; correct the name or its permissions."
        ) from error
    except ValueError as error:
        raise TextError(f"{pattern!r} must be a file name, but it is none: {error}.") from error
    if exists:
        kind = "a folder" if path.is_dir() else "a pipe or a device"
        raise TextError(
            f"{path} must be a text file, but it is {kind}; name a file, or write a pattern such "
            "as “corpus/*.en.gz”."
        )
    if not glob.has_magic(pattern):
        raise TextError(f"The text file {path} must exist, but there is none; correct the name.")
    found = [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]
    found = [path for path in found if path.is_file()]
    if not found:
        raise TextError(
            f"The pattern {pattern} must match at least one text file, but it matches none; "
            "correct the pattern."
        )
    return found


def _text(file: TextSource | Path) -> TextSource:
    """Take a file for the one text that it is."""
    return file if isinstance(file, TextSource) else TextSource(Path(file))


def _aligned(
    source: tuple[TextSource, ...], target: tuple[TextSource, ...]
) -> Iterator[tuple[str, str]]:
    """Walk both sides in step and report sides of different length."""
    if len(source) == len(target) == 1 and same_file(source[0], target[0]):
        rows = read_rows(source[0].path, [source[0].part, target[0].part])
        yield from ((source[0].marked(row[0]), target[0].marked(row[1])) for row in rows)
        return
    sources = chain.from_iterable(map(read_lines, source))
    targets = chain.from_iterable(map(read_lines, target))
    count = 0
    for line in sources:
        # zip() would swallow one line of the longer side, and with it the true count.
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
    """Name both sides and their numbers of lines."""
    return TextError(
        "Source and target must have the same number of lines, but "
        f"{_names(source)} has {source_lines:,} and {_names(target)} has {target_lines:,}; "
        "line n of one must translate line n of the other."
    )


def _names(texts: tuple[TextSource, ...]) -> str:
    """Name a side of the corpus in a message."""
    if len(texts) <= 3:
        return " + ".join(map(str, texts))
    return f"{texts[0]} + … + {texts[-1]} ({len(texts)} files)"
