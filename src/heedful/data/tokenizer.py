"""
Text to subword ids and back.

A thin shell around sentencepiece that makes it lossless: no normalisation, no spaces removed,
every character of the training text in the vocabulary. The special ids of the whole package live
here; text can never produce them, not even text such as “</s>”.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, get_args

import sentencepiece

from heedful.data.formats import Text
from heedful.data.subwords import Kind, learn_subwords
from heedful.errors import RunFolderError, StorageError, TextError, TokenizerError

PAD = 0
"""Fills the shorter lines of a batch."""
UNKNOWN = 1
"""Stands for a character that the training text did not have."""
START = 2
"""Begins a target sentence on its way into the decoder."""
END = 3
"""Ends a sentence."""

_SPECIALS = {"pad": PAD, "unknown": UNKNOWN, "start": START, "end": END}
_RECORD = "tokenizer.json"
_SHARED_FILE = "tokenizer.model"
_SIDE_FILES = ("tokenizer.source.model", "tokenizer.target.model")
_FORMAT = 1


class Tokenizer:
    """
    Subword models of both sides.

    Parameters
    ----------
    source_model : bytes
        A serialised sentencepiece model.
    target_model : bytes or None
        That of the target side; None if both sides share `source_model`.
    kind : {“bpe”, “unigram”, “character”, “word”}
        How text is cut.
    source_language : str
        Code of the source language, such as “en”.
    target_language : str
        Code of the target language.

    Raises
    ------
    TokenizerError
        If a model cannot be read or has other special ids than this package.

    Notes
    -----
    Lossless but for two characters that sentencepiece uses itself: U+2581 (▁) comes back as a
    space, and U+2585 (▅) is unknown where there is no byte fallback.
    """

    def __init__(
        self,
        source_model: bytes,
        target_model: bytes | None,
        *,
        kind: Kind,
        source_language: str,
        target_language: str,
    ) -> None:
        self.kind = kind
        self.source_language = source_language
        self.target_language = target_language
        self._models = (source_model,) if target_model is None else (source_model, target_model)
        processors = [_processor(model) for model in self._models]
        self._source, self._target = processors[0], processors[-1]

    @classmethod
    def train(
        cls,
        source_files: Sequence[Text | Path],
        target_files: Sequence[Text | Path],
        *,
        kind: Kind,
        vocabulary_size: int,
        shared: bool,
        source_language: str,
        target_language: str,
        seed: int,
        threads: int = 4,
    ) -> "Tokenizer":
        """
        Learn subwords from text.

        Parameters
        ----------
        source_files : sequence of Text or Path
            Text of the source side.
        target_files : sequence of Text or Path
            Text of the target side.
        kind : {“bpe”, “unigram”, “character”, “word”}
            How text is cut.
        vocabulary_size : int
            Subwords of each model, the four special ones included. A “character” model has as
            many as the text needs and takes this as the upper limit.
        shared : bool
            Whether one model is learned from both sides together.
        source_language : str
            Code of the source language, such as “en”.
        target_language : str
            Code of the target language.
        seed : int
            Which lines are taken from a text of more than two million lines.
        threads : int, default 4
            Threads that learn. The subwords of a unigram model depend on it (each thread adds up
            its own share of the counts), which is why it is not read off the machine.

        Returns
        -------
        Tokenizer
            The same bytes for the same text and arguments.

        Raises
        ------
        TokenizerError
            If the text does not allow that vocabulary size; the message says which it allows.
        TextError
            If the text is empty or cannot be read.

        Notes
        -----
        The paper shares one vocabulary of about 37,000 byte-pair subwords between English and
        German (section 5.1). From 4,000 subwords on, unseen characters are spelled in bytes
        instead of being unknown; below that the 256 bytes would cost too much of the vocabulary.
        """
        learn = partial(
            learn_subwords,
            kind=kind,
            vocabulary_size=vocabulary_size,
            special_ids=_SPECIALS,
            seed=seed,
            threads=threads,
        )
        source, target = source_language or "source", target_language or "target"
        if shared:
            models = [learn([*source_files, *target_files], f"{source} and {target} text together")]
        else:
            models = [learn(source_files, f"{source} text"), learn(target_files, f"{target} text")]
        return cls(
            models[0],
            None if shared else models[1],
            kind=kind,
            source_language=source_language,
            target_language=target_language,
        )

    @property
    def shared(self) -> bool:
        """Whether both sides use one model."""
        return len(self._models) == 1

    @property
    def source_size(self) -> int:
        """Subwords of the source side, special ones included."""
        return int(self._source.get_piece_size())

    @property
    def target_size(self) -> int:
        """Subwords of the target side, special ones included."""
        return int(self._target.get_piece_size())

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the models, for telling whether ids were made with this tokenizer."""
        return hashlib.sha256("".join(map(_sha256, self._models)).encode()).hexdigest()

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        """
        Turn source text into ids.

        Parameters
        ----------
        texts : sequence of str
            Lines of text.

        Returns
        -------
        list of list of int
            The ids of each line, without special symbols; none for an empty line.

        Raises
        ------
        TextError
            If a line holds half a surrogate pair, which is no text.

        Notes
        -----
        Special symbols are added where batches are made, so that ids on disk serve every model.
        """
        return _encode(self._source, texts)

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        """
        Turn target text into ids.

        Parameters
        ----------
        texts : sequence of str
            Lines of text.

        Returns
        -------
        list of list of int
            The ids of each line, without special symbols; none for an empty line.

        Raises
        ------
        TextError
            If a line holds half a surrogate pair, which is no text.

        Notes
        -----
        The same as `encode_source` when the vocabulary is shared.
        """
        return _encode(self._target, texts)

    def decode(self, ids: Iterable[int]) -> str:
        """
        Turn target ids into text.

        Parameters
        ----------
        ids : iterable of int
            Ids of the target side. Reading stops at `END`; `PAD` and `START` are skipped.

        Returns
        -------
        str
            The text, with “ ⁇ ” for what is unknown.

        Notes
        -----
        An id past the vocabulary is unknown too: a model's output may be padded to a round size.
        Subwords that spell bytes can spell any character, a line feed included.
        """
        kept = []
        for number in map(int, ids):
            if number == END:
                break
            if number not in (PAD, START):
                kept.append(number if 0 < number < self.target_size else UNKNOWN)
        return str(self._target.decode(kept)) if kept else ""

    def pieces_source(self, ids: Iterable[int]) -> list[str]:
        """
        Spell the subwords of source ids.

        Parameters
        ----------
        ids : iterable of int
            Ids of the source side, special ones allowed.

        Returns
        -------
        list of str
            One subword for each id; a space is written ▁.

        Notes
        -----
        For people: these are the labels of attention maps and alignments.
        """
        return _pieces(self._source, ids)

    def pieces_target(self, ids: Iterable[int]) -> list[str]:
        """
        Spell the subwords of target ids.

        Parameters
        ----------
        ids : iterable of int
            Ids of the target side, special ones allowed.

        Returns
        -------
        list of str
            One subword for each id; a space is written ▁.

        Notes
        -----
        For people: these are the labels of attention maps and alignments.
        """
        return _pieces(self._target, ids)

    def save(self, folder: Path) -> None:
        """
        Write the tokenizer into a run folder.

        Parameters
        ----------
        folder : Path
            An existing folder; gets ``tokenizer.json`` and one model file, or one for each side.

        Raises
        ------
        StorageError
            If a file cannot be written.

        Notes
        -----
        Each file is written beside, synced and renamed. ``tokenizer.json`` comes last: where it
        is, the models are.
        """
        names = [_SHARED_FILE] if self.shared else _SIDE_FILES
        files = dict(zip(names, self._models, strict=True))
        record = {
            "format": _FORMAT,
            "kind": self.kind,
            "shared": self.shared,
            "source_language": self.source_language,
            "target_language": self.target_language,
            "special_ids": _SPECIALS,
            "sha256": {name: _sha256(model) for name, model in files.items()},
        }
        files[_RECORD] = (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode()
        for name, content in files.items():
            _write(Path(folder) / name, content)

    @classmethod
    def load(cls, folder: Path) -> "Tokenizer":
        """
        Read the tokenizer of a run folder.

        Parameters
        ----------
        folder : Path
            A folder that `save` wrote into.

        Returns
        -------
        Tokenizer
            The tokenizer that was saved.

        Raises
        ------
        RunFolderError
            If a file is missing, cannot be read, or has another checksum than it was saved with.
        TokenizerError
            If ``tokenizer.json`` is not what this version writes, or a model is none.

        Notes
        -----
        File names are never taken from ``tokenizer.json``: it may come from a stranger.
        """
        path = Path(folder) / _RECORD
        record = _checked_record(_read(path), path)
        names = [_SHARED_FILE] if record["shared"] else _SIDE_FILES
        models = []
        for name in names:
            model = _read(Path(folder) / name)
            if _sha256(model) != record["sha256"].get(name):
                raise RunFolderError(
                    f"{Path(folder) / name} must be the file that {path} records, but its SHA-256 "
                    "differs: it is damaged or of another run; copy the whole run folder again."
                )
            models.append(model)
        return cls(
            models[0],
            None if record["shared"] else models[1],
            kind=record["kind"],
            source_language=record["source_language"],
            target_language=record["target_language"],
        )


def _processor(model: bytes) -> Any:
    """Load a sentencepiece model and check that its special ids are ours."""
    try:
        processor = sentencepiece.SentencePieceProcessor()
        processor.load_from_serialized_proto(model)
    except (RuntimeError, OSError) as error:
        raise TokenizerError(
            "A tokenizer must be a sentencepiece model, but this one cannot be read; train it "
            "again or copy it again."
        ) from error
    ids = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    if ids != (PAD, UNKNOWN, START, END):
        raise TokenizerError(
            f"The special ids of a tokenizer must be padding {PAD}, unknown {UNKNOWN}, start "
            f"{START} and end {END}, but this sentencepiece model has {ids}; train a new one."
        )
    return processor


def _encode(processor: Any, texts: Sequence[str]) -> list[list[int]]:
    """Turn lines into ids."""
    try:
        ids: list[list[int]] = processor.encode(list(texts), out_type=int)
    except TypeError as error:
        for number, text in enumerate(texts, start=1):
            if any("\ud800" <= character <= "\udfff" for character in text):
                raise TextError(
                    f"Text must be whole Unicode characters, but text {number} of {len(texts)} "
                    "holds half a surrogate pair; decode it as UTF-8."
                ) from error
        raise
    return ids


def _pieces(processor: Any, ids: Iterable[int]) -> list[str]:
    """Spell ids; one past the vocabulary is unknown."""
    size = processor.get_piece_size()
    known = [number if 0 <= number < size else UNKNOWN for number in map(int, ids)]
    return [str(processor.id_to_piece(number)) for number in known]


def _sha256(content: bytes) -> str:
    """Hash bytes."""
    return hashlib.sha256(content).hexdigest()


def _checked_record(content: bytes, path: Path) -> dict[str, Any]:
    """Check what ``tokenizer.json`` says before any of it is used."""
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RunFolderError(
            f"{path} must be JSON, but it cannot be read ({error}); copy the run folder again."
        ) from error
    languages = ("source_language", "target_language")
    expected = (
        isinstance(record, dict)
        and record.get("format") == _FORMAT
        and record.get("kind") in get_args(Kind)
        and isinstance(record.get("shared"), bool)
        and all(isinstance(record.get(name), str) for name in languages)
        and record.get("special_ids") == _SPECIALS
        and isinstance(record.get("sha256"), dict)
    )
    if not expected:
        raise TokenizerError(
            f"{path} must have the fields of format {_FORMAT} (kind, shared, languages, special "
            f"ids {_SPECIALS}, sha256), but it differs: it was changed, or a newer version wrote "
            "it; copy it again or upgrade heedful."
        )
    return dict(record)


def _read(path: Path) -> bytes:
    """Read a file of a run folder."""
    try:
        return path.read_bytes()
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


def _write(path: Path, content: bytes) -> None:
    """Write a file beside, sync it and rename it."""
    beside = path.with_name(f".{path.name}.partial")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise StorageError(
            f"{path} could not be written: “{error.strerror or error}”; make room or choose "
            "another folder."
        ) from error
