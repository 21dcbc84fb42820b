"""
The files of a tokenizer in a run folder.

``tokenizer.json`` holds the kind and the SHA-256 of the other files. The other files are
sentencepiece's ``tokenizer.model``; or ``tokenizer.vocabulary.json``, with ``tokenizer.codes`` for
BPE codes; or another toolkit's files and ``tokenizer.imported.json``. If the sides have different
models, each side has its own file: ``tokenizer.source.model`` and ``tokenizer.target.model``.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.errors import RunFolderError, TokenizerError
from heedful.files import read_within, write_whole, writing
from heedful.tokenization.frame import Frame
from heedful.tokenization.imported_model import CUTTERS, PREFIX, ImportedModel, is_imported
from heedful.tokenization.sentencepiece_model import SentencePieceModel
from heedful.tokenization.special_symbols import SPECIAL_IDS
from heedful.tokenization.subword_model import SubwordModel
from heedful.tokenization.vocabulary import Vocabulary
from heedful.tokenization.vocabulary_model import VocabularyModel

RECORD = "tokenizer.json"
"""The file that describes the other files."""

_ENDINGS = {
    **dict.fromkeys(("bpe", "unigram", "character", "word"), ("model",)),
    "codes": ("codes", "vocabulary.json"),
    "word-list": ("vocabulary.json",),
    **{f"{PREFIX}{cutter}": (*ends, "imported.json") for cutter, ends in CUTTERS.items()},
}
KINDS = tuple(_ENDINGS)
"""Kinds of segmentation: by a sentencepiece model, BPE codes, a word list or another toolkit."""

# Format 2 added language tags, codes and word lists; 3 imported vocabularies; 4 a target whose kind
# differs from the source's; 5 text before every source line; 6 tokens around each text.
_FORMATS = (1, 2, 3, 4, 5, 6)
_TEXTS = ("source_language", "target_language", "source_prefix")
LONGEST_PREFIX = 1000
"""Maximum number of characters of the text before every source line."""


class TokenizerFacts(NamedTuple):
    """Fields of ``tokenizer.json`` that do not describe the models."""

    source_language: str
    target_language: str
    source_prefix: str = ""
    """Text before every source line."""
    frame: Frame | None = None
    """Tokens around each text."""


def write_models(folder: Path, models: list[SubwordModel], facts: TokenizerFacts) -> None:
    """
    Write the files of a tokenizer.

    Each file is written under a temporary name, synced and renamed. ``tokenizer.json`` is written
    last, so if it exists, the models exist, too.

    Raises `StorageError` if a file cannot be written.
    """
    files = {
        _name(ending, side, len(models) == 1): content
        for side, model in zip(("source", "target"), models, strict=False)
        for ending, content in model.files().items()
    }
    kinds = [model.kind for model in models]
    record = {
        "format": _format(kinds, any(model.tags for model in models), facts),
        "kind": kinds[0],
        **({"target_kind": kinds[-1]} if kinds[-1] != kinds[0] else {}),
        "shared": len(models) == 1,
        "source_language": facts.source_language,
        "target_language": facts.target_language,
        **({"source_prefix": facts.source_prefix} if facts.source_prefix else {}),
        **({"frame": facts.frame.to_record()} if facts.frame else {}),
        "special_ids": SPECIAL_IDS,
        "sha256": {name: _sha256(content) for name, content in files.items()},
    }
    files[RECORD] = (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode()
    for name, content in files.items():
        path = Path(folder) / name
        with writing(path):
            write_whole(path, content, alone=True)


def read_models(folder: Path) -> tuple[list[SubwordModel], TokenizerFacts]:
    """
    Read the files of a tokenizer.

    File names are never taken from ``tokenizer.json``, which may be untrusted.

    Raises `RunFolderError` if a file is missing, cannot be read, or does not have the recorded
    checksum. Raises `TokenizerError` if ``tokenizer.json`` does not have a supported format, or if
    a model cannot be read.
    """
    path = Path(folder) / RECORD
    record = _checked_record(_read(path), path)
    models = []
    kinds = {"source": record["kind"]}
    if not record["shared"]:
        kinds["target"] = record.get("target_kind", record["kind"])
    for side, kind in kinds.items():
        files = {}
        for ending in _ENDINGS[kind]:
            name = _name(ending, side, record["shared"])
            files[ending] = content = _read(Path(folder) / name)
            if _sha256(content) != record["sha256"].get(name):
                raise RunFolderError(
                    f"{Path(folder) / name} must be the file that {path} records, but its SHA-256 "
                    "differs; copy the whole run folder again."
                )
        try:
            models.append(_model(kind, files))
        except TokenizerError as error:
            raise TokenizerError(f"the tokenizer in {folder} cannot be used: {error}") from error
    frame = None
    if "frame" in record:
        frame = Frame.from_record(record["frame"], min(model.size for model in models))
    source, target, prefix = (str(record.get(name, "")) for name in _TEXTS)
    facts = TokenizerFacts(source, target, prefix, frame)
    if frame is not None and frame.languages and not {source, target} <= {*frame.languages}:
        raise TokenizerError(
            f"{path} must name only languages that have a token, but does not; copy it again."
        )
    return models, facts


def fingerprint_of(
    models: list[SubwordModel], source_prefix: str = "", frame: Frame | None = None
) -> str:
    """Hash the models of a tokenizer, the text before source lines, and the tokens around texts."""
    # A hash of the hashes of all files in order, so that it can also be computed without the
    # models.
    hashes = [_sha256(content) for model in models for content in model.files().values()]
    around = json.dumps(frame.to_record()) if frame else ""
    return _sha256(("".join(hashes) + source_prefix + around).encode())


def _format(kinds: Sequence[str], tags: bool, facts: TokenizerFacts) -> int:
    """Choose the oldest format version that can express the tokenizer."""
    if facts.frame:
        return 6
    if facts.source_prefix:
        return 5
    if len(set(kinds)) > 1:
        return 4
    if is_imported(kinds[0]):
        return 3
    return 2 if tags or kinds[0] in ("codes", "word-list") else 1


def _model(kind: Any, files: dict[str, bytes]) -> SubwordModel:
    """Load a model from its files."""
    if is_imported(kind):
        return ImportedModel.from_files(kind, files)
    if "model" in files:
        return SentencePieceModel(files["model"], kind)
    return VocabularyModel(Vocabulary.from_bytes(files["vocabulary.json"]), files.get("codes"))


def _name(ending: str, side: str, shared: bool) -> str:
    """Name a file."""
    return f"tokenizer.{ending}" if shared else f"tokenizer.{side}.{ending}"


def _sha256(content: bytes) -> str:
    """Hash bytes."""
    return hashlib.sha256(content).hexdigest()


def _checked_record(content: bytes, path: Path) -> dict[str, Any]:
    """Check the content of ``tokenizer.json`` before it is used."""
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RunFolderError(
            f"{path} must be JSON, but it cannot be read ({error}); copy the run folder again."
        ) from error
    expected = (
        isinstance(record, dict)
        and record.get("format") in _FORMATS
        and record.get("kind") in KINDS
        and record.get("target_kind", record["kind"]) in KINDS
        and isinstance(record.get("shared"), bool)
        and all(isinstance(record.get(name), str) for name in _TEXTS[:2])
        and isinstance(record.get("source_prefix", ""), str)
        and len(record.get("source_prefix", "")) <= LONGEST_PREFIX
        and record.get("special_ids") == SPECIAL_IDS
        and isinstance(record.get("sha256"), dict)
    )
    if not expected:
        raise TokenizerError(
            f"{path} must have the fields of format {_FORMATS[-1]} (kind, shared, languages, "
            f"special ids {SPECIAL_IDS}, sha256), but does not; copy it again or upgrade heedful."
        )
    return dict(record)


def _read(path: Path) -> bytes:
    """Read a file of a run folder."""
    try:
        return read_within(path)
    except FileNotFoundError as error:
        raise RunFolderError(
            f"A run folder must hold {path.name}, but {path} does not exist; check the path, or "
            "copy the whole run folder."
        ) from error
    except OSError as error:
        raise RunFolderError(
            f"{path} must be a file that can be read, but the system says "
            f"“{error.strerror or error}”; correct its permissions."
        ) from error
