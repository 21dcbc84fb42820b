"""The tokenizer of an imported model: files in its folder, or the file that the user names."""

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
    "no sentencepiece model and no BPE codes were found, so text is split at spaces; name a "
    "tokenizer file with --tokenizer"
)


class TextSplitter(NamedTuple):
    """The tokenizer file of one side; a tokenizer that splits at spaces needs no file."""

    kind: str
    """``sentencepiece``, ``codes`` or ``spaces``."""
    content: bytes = b""
    """Content of the file; codes are in the format of subword-nmt."""


def find_splitters(
    folder: Path, options: ReadOptions, languages: tuple[str, str]
) -> list[TextSplitter]:
    """
    Find the tokenizer files of both sides.

    The names of SentencePiece's files end in ``.model`` or ``.spm``. One of the dot-separated parts
    in the name of a file with BPE codes is ``codes``, ``code``, ``bpecodes`` or ``bpe``. Raises
    `ExchangeError` if several files match, or if the file that the user names does not exist.
    """
    place = tokenizer_place(options, folder)
    if place.is_file():
        return [read_splitter(place)] * 2
    files = sorted(file for file in place.iterdir() if file.is_file() and _is_cutter(file))
    return [_choose(files, language, place) for language in languages]


def tokenizer_place(options: ReadOptions, folder: Path) -> Path:
    """Return the tokenizer file or folder that the user names, or the model's folder."""
    place = options.tokenizer or folder
    if not place.exists():
        raise ExchangeError(f"--tokenizer must name a file or folder, but {place} does not exist.")
    return place


def tokenizer_of(
    id_mappings: Sequence[IdMapping], splitters: Sequence[TextSplitter], languages: tuple[str, str]
) -> Tokenizer:
    """Build a tokenizer from the vocabularies and tokenizer files of both sides."""
    source, target = (
        ImportedModel(id_mapping, kind, content)
        for id_mapping, (kind, content) in zip(id_mappings, splitters, strict=True)
    )
    same = id_mappings[0] == id_mappings[1] and splitters[0] == splitters[1]
    return Tokenizer(
        source,
        None if same else target,
        source_language=languages[0],
        target_language=languages[1],
    )


def first_ids(tokens: Sequence[str]) -> dict[str, int]:
    """Map tokens to ids; equal tokens get the id of the first."""
    return {token: number for number, token in reversed([*enumerate(tokens)])}


def read_splitter(file: Path) -> TextSplitter:
    """Read a tokenizer file and detect its kind. Raises `ExchangeError` if it cannot be read."""
    try:
        content = read_within(file)
    except OSError as error:
        raise ExchangeError(
            f"the tokenizer {file} must be readable, but is not: {error.strerror}; name "
            "another file with --tokenizer."
        ) from error
    if file.name.endswith(_SENTENCEPIECE):
        return TextSplitter("sentencepiece", content)
    return TextSplitter("codes", _as_codes(content))


def _is_cutter(file: Path) -> bool:
    """Return whether a file is named like a SentencePiece model or BPE codes."""
    parts = file.name.lower().split(".")
    return file.name.endswith(_SENTENCEPIECE) or any(part in _CODES for part in parts)


def _choose(files: list[Path], language: str, folder: Path) -> TextSplitter:
    """Choose the file of one side."""
    own = [file for file in files if language and language in file.name.split(".")]
    fitting = own or files
    if len(fitting) > 1:
        raise ExchangeError(
            f"There must be one tokenizer file, but {folder} has {len(fitting)}: "
            f"{', '.join(file.name for file in fitting[:6])}; name the right file with --tokenizer."
        )
    return read_splitter(fitting[0]) if fitting else TextSplitter("spaces")


def _as_codes(content: bytes) -> bytes:
    """Convert fastBPE codes, which have counts in a third column, to the format of subword-nmt."""
    lines = content.rstrip(b"\n").split(b"\n")
    parts = [line.split(b" ") for line in lines]
    if not all(len(part) == 3 and part[2].strip().isdigit() for part in parts):
        return content
    return b"#version: 0.2\n" + b"".join(b"%s %s\n" % (part[0], part[1]) for part in parts)
