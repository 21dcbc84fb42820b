"""What cut the text of an imported model: the files beside it, or the one that the user names."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from heedful.errors import ExchangeError
from heedful.exchange.formats import ReadOptions
from heedful.files import read_within
from heedful.tokenization.id_mapping import IdMapping
from heedful.tokenization.imported_model import ImportedModel
from heedful.tokenization.tokenizer import Tokenizer

_SENTENCEPIECE = (".model", ".spm")
_CODES = ("code", "codes", "bpecodes", "bpe")
SPACES_NOTE = (
    "no sentencepiece model and no codes were found beside the model: text is cut at its spaces "
    "and has to come as it did for training; name the file with --tokenizer"
)


class TextSplitter(NamedTuple):
    """
    Say how text is cut.

    Attributes
    ----------
    kind : str
        ``sentencepiece``, ``codes`` or ``spaces``.
    content : bytes, default b''
        Of the file that says it in detail; codes as subword-nmt writes them.

    Notes
    -----
    What cuts at spaces needs no file.
    """

    kind: str
    content: bytes = b""


def find_splitters(
    folder: Path, options: ReadOptions, languages: tuple[str, str]
) -> list[TextSplitter]:
    """
    Find what cut the text of both sides.

    Parameters
    ----------
    folder : Path
        Where the model is.
    options : ReadOptions
        May name a file, or another folder.
    languages : tuple of str and str
        Codes of source and target: a file such as ``codes.en`` is of one side.

    Returns
    -------
    list of Cutter
        Of source and target.

    Raises
    ------
    ExchangeError
        If there are several files, or the named one is not there.

    Notes
    -----
    Files that end in ``.model`` or ``.spm`` are sentencepiece's; ``codes``, ``bpecodes``,
    ``code`` and files that end so are codes.
    """
    place = options.tokenizer or folder
    if not place.exists():
        raise ExchangeError(f"--tokenizer must name a file or folder, but {place} is not there.")
    if place.is_file():
        return [read_splitter(place)] * 2
    files = sorted(file for file in place.iterdir() if file.is_file() and _is_cutter(file))
    return [_choose(files, language, place) for language in languages]


def tokenizer_of(
    id_mappings: Sequence[IdMapping], splitters: Sequence[TextSplitter], languages: tuple[str, str]
) -> Tokenizer:
    """
    Make a tokenizer of numbered vocabularies and what cuts the text.

    Parameters
    ----------
    id_mappings : sequence of IdMapping
        Of source and target.
    splitters : sequence of TextSplitter
        Of source and target.
    languages : tuple of str and str
        Their codes.

    Returns
    -------
    Tokenizer
        One model for both sides if they are the same.

    Notes
    -----
    Raises `TokenizerError` if a file is none of its kind.
    """
    source, target = (
        ImportedModel(id_mapping, kind, content)
        for id_mapping, (kind, content) in zip(id_mappings, splitters, strict=True)
    )
    same = id_mappings[0] == id_mappings[1] and splitters[0] == splitters[1]
    names = {"source_language": languages[0], "target_language": languages[1]}
    return Tokenizer(source, None if same else target, **names)


def read_splitter(file: Path) -> TextSplitter:
    """
    Read a file and tell what it is.

    Parameters
    ----------
    file : Path
        A sentencepiece model or codes.

    Returns
    -------
    TextSplitter
        ``sentencepiece`` or ``codes``, even if fastBPE wrote them.

    Notes
    -----
    Raises `ExchangeError` if it cannot be read.
    """
    try:
        content = read_within(file)
    except OSError as error:
        raise ExchangeError(f"{file} must be there to read, but: {error.strerror}.") from error
    if file.name.endswith(_SENTENCEPIECE):
        return TextSplitter("sentencepiece", content)
    return TextSplitter("codes", _as_codes(content))


def _is_cutter(file: Path) -> bool:
    """Tell whether a file is named like a model or codes."""
    parts = file.name.lower().split(".")
    return file.name.endswith(_SENTENCEPIECE) or any(part in _CODES for part in parts)


def _choose(files: list[Path], language: str, place: Path) -> TextSplitter:
    """Choose the file of one side."""
    own = [file for file in files if language and language in file.name.split(".")]
    found = own or files
    if len(found) > 1:
        raise ExchangeError(
            f"One file must say how text is cut, but {place} has {len(found)}: "
            f"{', '.join(file.name for file in found[:6])}; name the right one with --tokenizer."
        )
    return read_splitter(found[0]) if found else TextSplitter("spaces")


def _as_codes(content: bytes) -> bytes:
    """Write codes of fastBPE, which count each merge in a third column, as subword-nmt does."""
    lines = content.rstrip(b"\n").split(b"\n")
    parts = [line.split(b" ") for line in lines]
    if not all(len(part) == 3 and part[2].strip().isdigit() for part in parts):
        return content
    return b"#version: 0.2\n" + b"".join(b"%s %s\n" % (part[0], part[1]) for part in parts)
