"""
Line-aligned text files in, sentence pairs out.

Text is read as a stream, plain or compressed, and split at line feeds only: the other characters
that `str.splitlines` would break at (U+2028, form feed, a lone carriage return, …) are text. What
cannot be text (a broken encoding, a NUL) is reported with file, line and byte.
"""

import glob
import gzip
import lzma
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from itertools import chain
from pathlib import Path

from heedful.errors import TextError

_COMPRESSED = (".gz", ".xz")
_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)
_BYTE_ORDER_MARK = "\ufeff"


def expand(patterns: Sequence[str | Path]) -> list[Path]:
    """
    Find the files that names and glob patterns stand for.

    Parameters
    ----------
    patterns : sequence of str or Path
        File names and glob patterns (``*``, ``?``, ``[…]``, ``**``).

    Returns
    -------
    list of Path
        The files in the order of `patterns`, sorted by name within a pattern.

    Raises
    ------
    TextError
        If nothing was given, a file is missing or is no regular file, or a pattern matches none.

    Notes
    -----
    A name that exists is taken literally, even when it holds a glob character. A file named twice
    is read twice, which is a way to weigh it. Pipes are refused because training reads its text
    more than once.
    """
    if not patterns:
        raise TextError("At least one text file must be given, and none was.")
    return [path for pattern in patterns for path in _expand_one(str(pattern))]


def one_file(pattern: str | Path) -> Path:
    """
    Find exactly one file.

    Parameters
    ----------
    pattern : str or Path
        A file or a glob.

    Returns
    -------
    Path
        The only file that it names.

    Notes
    -----
    Raises `TextError` if there is none or more than one.
    """
    found = expand([pattern])
    if len(found) != 1:
        raise TextError(f"{pattern} must name one file, but names {len(found)}.")
    return found[0]


def read_lines(path: Path) -> Iterator[str]:
    """
    Read a text file line by line.

    Parameters
    ----------
    path : Path
        A UTF-8 file, plain or compressed (``.gz``, ``.xz``).

    Yields
    ------
    str
        A line without its line end.

    Raises
    ------
    TextError
        If the file cannot be opened, is damaged, or holds something that is no UTF-8 text.

    Notes
    -----
    One line is held at a time, however long the file is. See `decode_lines` for what a line is.
    """
    path = Path(path)
    try:
        with _open(path) as stream:
            yield from decode_lines(stream, str(path))
    except _DAMAGED as error:
        raise TextError(
            f"{path} must be a whole {path.suffix} file, but it is cut off or damaged "
            f"({error}); fetch or compress it again."
        ) from error
    except OSError as error:
        raise TextError(
            f"{path} must be a text file that can be read, but the system says "
            f"“{error.strerror or error}”; correct the name or its permissions."
        ) from error


def decode_lines(stream: Iterable[bytes], name: str) -> Iterator[str]:
    """
    Decode the lines of a binary stream.

    Parameters
    ----------
    stream : iterable of bytes
        Lines that end at a line feed, as every binary file object yields them.
    name : str
        What to call the stream in messages: a path, or “standard input”.

    Yields
    ------
    str
        A line without its line end.

    Raises
    ------
    TextError
        If a line is not UTF-8 or holds a NUL character.

    Notes
    -----
    A line ends at a line feed and nowhere else. One carriage return before it (Windows line ends)
    and a byte order mark at the start of the stream are dropped.
    """
    for number, raw in enumerate(stream, start=1):
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise TextError(
                f"{name} must be UTF-8 text, but line {number} holds the byte "
                f"0x{raw[error.start]:02x} at offset {error.start}, which UTF-8 does not allow "
                "there; convert the file (iconv -t UTF-8) or repair the line."
            ) from error
        if "\0" in line:
            raise TextError(
                f"{name} must be text, but line {number} holds a NUL character at offset "
                f"{raw.index(0)}; remove it, or convert the file if it is UTF-16."
            )
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        yield line.removesuffix("\n").removesuffix("\r")


def language_of(path: Path) -> str:
    """
    Read the language off a file's ending.

    Parameters
    ----------
    path : Path
        A text file such as ``train.en`` or ``train.en.gz``.

    Returns
    -------
    str
        The ending before any compression, “en” in both cases; empty if there is none.

    Notes
    -----
    The field's habit, not a check: ``notes.txt`` gives “txt”.

    Examples
    --------
    >>> language_of(Path("train.en.gz"))
    'en'
    """
    path = Path(path)
    if path.suffix in _COMPRESSED:
        path = path.with_suffix("")
    return path.suffix.removeprefix(".")


@dataclass(frozen=True)
class Corpus:  # numpydoc ignore=PR02
    """
    Source and target text whose lines belong together.

    Attributes
    ----------
    source : tuple of Path
        The files of the source side.
    target : tuple of Path
        The files of the target side. When both sides have as many files, the first source file
        belongs to the first target file and so on; else each side is read as one long text.
    """

    source: tuple[Path, ...]
    target: tuple[Path, ...]

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
        Every call reads the files again. The lines are counted while they are read, so a
        difference is found at the end of the shorter side.
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
    """Find the files of one name or pattern."""
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


def _open(path: Path) -> BufferedIOBase:
    """Open a file for reading bytes, decompressed if its ending says so."""
    if path.suffix == ".gz":
        return gzip.open(path, "rb")
    if path.suffix == ".xz":
        return lzma.open(path, "rb")
    return path.open("rb")


def _aligned(source: tuple[Path, ...], target: tuple[Path, ...]) -> Iterator[tuple[str, str]]:
    """Walk both sides in step and report sides of different length."""
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
    source: tuple[Path, ...], source_lines: int, target: tuple[Path, ...], target_lines: int
) -> TextError:
    """Name both sides and their numbers of lines."""
    return TextError(
        "Source and target must have the same number of lines, but "
        f"{_names(source)} has {source_lines:,} and {_names(target)} has {target_lines:,}; "
        "line n of one must translate line n of the other."
    )


def _names(paths: tuple[Path, ...]) -> str:
    """Name a side of the corpus in a message."""
    if len(paths) <= 3:
        return " + ".join(map(str, paths))
    return f"{paths[0]} + … + {paths[-1]} ({len(paths)} files)"
