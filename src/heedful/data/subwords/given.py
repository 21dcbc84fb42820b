"""
A tokenizer that somebody already has: which of four things a file is.

A sentencepiece model, byte-pair codes of subword-nmt, a list of words with or without counts, or
nothing of the kind. A folder with ``tokenizer.json`` is read by `heedful.data.tokenizer`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.data.corpus import one_file, read_lines
from heedful.data.files import read_within
from heedful.data.subwords.codes import VERSION_MARK
from heedful.data.subwords.learn import Kind
from heedful.data.subwords.sentencepiece_model import SentencePieceModel
from heedful.errors import TextError, TokenizerError

# Of sentencepiece's ModelProto and TrainerSpec (sentencepiece_model.proto).
_TRAINER_SPEC = 2
_MODEL_TYPE = 3
_MODEL_TYPES: dict[int, Kind] = {1: "unigram", 2: "bpe", 3: "word", 4: "character"}


@dataclass(frozen=True)
class CodesFile:
    """
    Byte-pair codes.

    Attributes
    ----------
    content : bytes
        The file as text in UTF-8, decompressed.
    """

    content: bytes


@dataclass(frozen=True)
class WordList:
    """
    Words to be told apart.

    Attributes
    ----------
    words : tuple of str
        As the file lists them.
    """

    words: tuple[str, ...]


def read_given(path: Path) -> SentencePieceModel | CodesFile | WordList:
    """
    Read a file that text can be cut with.

    Parameters
    ----------
    path : Path
        A sentencepiece ``.model``, or a text file, plain or compressed.

    Returns
    -------
    SentencePieceModel or CodesFile or WordList
        What it is.

    Raises
    ------
    TokenizerError
        If it is nothing of these.
    TextError
        If there is no such file.

    Notes
    -----
    Codes say so in their first line, or have two symbols in every line. A line of a word list is
    a word, or a word and a count.
    """
    path = one_file(path).path
    if path.suffix == ".model":
        try:
            content = read_within(path)
        except OSError as error:
            raise _neither(path, error.strerror or str(error)) from error
        return SentencePieceModel(content, _kind(content))
    try:
        lines = list(read_lines(path))
    except TextError as error:
        raise _neither(path, str(error)) from error
    parts = [line.split(" ") for line in lines if line.strip()]
    if not parts:
        raise _neither(path, "it is empty")
    in_twos = all(len(part) == 2 and all(part) for part in parts)
    if lines[0].startswith(VERSION_MARK) or (
        in_twos and not all(second.isdecimal() for _, second in parts)
    ):
        return CodesFile("".join(f"{line}\n" for line in lines).encode())
    return WordList(tuple(_words(lines, path)))


def _words(lines: Sequence[str], path: Path) -> Iterator[str]:
    """Read a list of words with or without counts."""
    for number, line in enumerate(lines, start=1):
        parts = line.split()
        if len(parts) == 1 or (len(parts) == 2 and parts[1].isdecimal()):
            yield parts[0]
        elif parts:
            raise _neither(path, f"line {number} is {line[:60]!r}")


def _neither(path: Path, reason: str) -> TokenizerError:
    """Say what a tokenizer's file may be."""
    return TokenizerError(
        "A tokenizer must be a folder with tokenizer.json, a sentencepiece .model, a codes file of "
        f"subword-nmt, or a list of words, one a line, each alone or with a count; {path} is none "
        f"of them: {reason.rstrip('.')}."
    )


def _kind(model: bytes) -> Kind:
    """Read off a serialised sentencepiece model how it cuts text."""
    try:
        trainer = dict(_fields(model)).get(_TRAINER_SPEC, b"")
        kind = dict(_fields(trainer)).get(_MODEL_TYPE, 1) if isinstance(trainer, bytes) else 0
        return _MODEL_TYPES[int(kind)]
    except (IndexError, KeyError, ValueError):
        return "bpe"  # it is broken, and sentencepiece will say so


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Walk over the fields of a protocol buffer message."""
    place = 0

    def varint() -> int:
        nonlocal place
        number = shift = 0
        while True:
            byte = message[place]
            place += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number
            if shift > 63:
                raise ValueError("a number of more than 64 bits")

    while place < len(message):
        key = varint()
        number, form = key >> 3, key & 7
        if form == 0:
            yield number, varint()
            continue
        size = {1: 8, 5: 4}.get(form) or (varint() if form == 2 else 0)
        if not size and form != 2:
            raise ValueError(f"field of form {form}")
        yield number, message[place : place + size]
        place += size
