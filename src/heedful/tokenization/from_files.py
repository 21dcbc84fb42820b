"""
Tokenizers from the user's files, and detection of their format.

Files are sentencepiece models, byte-pair codes of subword-nmt, or lists of words with or without
counts. A folder with ``tokenizer.json`` is read by `heedful.tokenization.tokenizer`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from heedful.errors import TextError, TokenizerError
from heedful.files import read_within
from heedful.text.corpus import one_file, read_lines
from heedful.text.file_formats import TextSource
from heedful.text.language_codes import ENDINGS, look_up, parse_code
from heedful.tokenization.bpe_codes import VERSION_MARK
from heedful.tokenization.model_proto import kind_of, with_our_ids
from heedful.tokenization.sentencepiece_model import SentencePieceModel, load_processor
from heedful.tokenization.serialization import read_models
from heedful.tokenization.subword_model import (
    SubwordLearner,
    SubwordModel,
    models_of_sides,
    share_vocabulary,
)
from heedful.tokenization.tokenizer import Tokenizer
from heedful.tokenization.vocabulary import Vocabulary
from heedful.tokenization.vocabulary_model import learn_codes_vocabulary, learn_word_vocabulary

# A special symbol with its score, as in the first lines of a .vocab file of `spm_train`.
_SCORED_SYMBOL = re.compile(r"<[^\t]+>\t-?0(\.0+)?")


@dataclass(frozen=True)
class CodesFile:
    """Byte-pair codes."""

    content: bytes
    """The file as text in UTF-8, decompressed."""


@dataclass(frozen=True)
class WordList:
    """A word list for a word vocabulary."""

    words: tuple[str, ...]
    """The words in the order of the file."""


def read_given(path: Path) -> SentencePieceModel | CodesFile | WordList:
    """
    Read a tokenizer file of any supported kind.

    Codes have a version in their first line, or two symbols in every line. A line of a word list is
    a word, or a word and a count.

    Raises `TokenizerError` if the file has another format, `TextError` if it does not exist.
    """
    path = one_file(path).path
    if path.suffix == ".model":
        try:
            content = read_within(path)
        except OSError as error:
            raise _neither(path, error.strerror or str(error)) from error
        try:
            content = with_our_ids(content, load_processor(content))
            return SentencePieceModel(content, kind_of(content))
        except TokenizerError as error:
            raise TokenizerError(f"{path} cannot be used: {error}") from error
    try:
        lines = list(read_lines(path))
    except TextError as error:
        raise _neither(path, str(error)) from error
    parts = [line.split(" ") for line in lines if line.strip()]
    if not parts:
        raise _neither(path, "it is empty")
    if any(map(_SCORED_SYMBOL.fullmatch, lines[:4])):
        model_path = path.with_suffix(".model")
        raise TokenizerError(
            f"A tokenizer must be able to split text, but {path} only lists the subwords of a "
            "sentencepiece model; give its .model file"
            + (f": {model_path}." if model_path.exists() else ", which `spm_train` wrote with it.")
        )
    in_twos = all(len(part) == 2 and all(part) for part in parts)
    if lines[0].startswith(VERSION_MARK) or (
        in_twos and not all(second.isdecimal() for _, second in parts)
    ):
        return CodesFile("".join(f"{line}\n" for line in lines).encode())
    return WordList(tuple(_words(lines, path)))


def _words(lines: Sequence[str], path: Path) -> Iterator[str]:
    """Parse a list of words with or without counts."""
    for number, line in enumerate(lines, start=1):
        parts = line.split()
        if len(parts) == 1 or (len(parts) == 2 and parts[1].isdecimal()):
            yield parts[0]
        elif parts:
            raise _neither(path, f"line {number} is {line[:60]!r}")


def _neither(path: Path, reason: str) -> TokenizerError:
    """Build the error that lists the supported files."""
    return TokenizerError(
        "A tokenizer must be a folder with tokenizer.json, a sentencepiece .model, codes of "
        f"subword-nmt, or a list of words (one per line, with or without counts); {path} is "
        f"something else: {reason.rstrip('.')}."
    )


def tokenizer_from_files(
    path: Path,
    source_files: Sequence[TextSource | Path],
    target_files: Sequence[TextSource | Path],
    *,
    vocabulary_size: int,
    shared: bool,
    source_language: str,
    target_language: str,
    threshold: int = 0,
    complete: bool = False,
) -> Tokenizer:
    """
    Load a tokenizer from the user's file or folder.

    `vocabulary_size`: maximum number of entries in a vocabulary built from the text, including
    special symbols.

    Text for BPE codes and word lists must already be tokenized, as for subword-nmt.

    Raises `TokenizerError` for an unsupported format, or if the sides share a vocabulary although
    `shared` is False, or the reverse. Raises `RunFolderError` if a file in the folder is missing or
    damaged. Raises `TextError` if the file does not exist, or the text is empty or cannot be read.
    """
    path = Path(path)
    models: list[SubwordModel]
    if path.is_dir():
        tokenizer = Tokenizer.load(path)
        _check_shared(tokenizer.models, shared, path)
        return _with_languages(tokenizer, source_language, target_language)
    loaded = read_given(path)
    if isinstance(loaded, SentencePieceModel):
        models = [loaded]
        _check_shared(models, shared, path)
    else:
        learn: SubwordLearner
        if isinstance(loaded, CodesFile):
            learn = partial(
                learn_codes_vocabulary,
                loaded.content,
                vocabulary_size=vocabulary_size,
                threshold=threshold,
                complete=complete,
            )
        else:
            learn = partial(learn_word_vocabulary, loaded.words, vocabulary_size=vocabulary_size)
        languages = source_language, target_language
        models = models_of_sides(learn, source_files, target_files, shared, languages)
    return Tokenizer(*models, source_language=source_language, target_language=target_language)


def _with_languages(tokenizer: Tokenizer, source: str, target: str) -> Tokenizer:
    """
    Return a folder's tokenizer, set to these languages.

    If the model has language tokens and a file's suffix is not a language, the tokenizer keeps its
    own language. Raises `SettingError` for a language without a token.
    """
    frame = tokenizer.frame
    if frame is not None and frame.languages:
        known = tokenizer.languages
        first, second = (
            name if look_up(name, known) or _is_language(name) else "" for name in (source, target)
        )
        return tokenizer.between(first, second, ("data.source_language", "data.target_language"))
    return tokenizer.changed(source_language=source, target_language=target)


def _is_language(name: str) -> bool:
    """Whether a file suffix is a language code, unlike “src”."""
    tag = parse_code(name)
    return tag is not None and tag.language not in ENDINGS


def could_have_given(path: Path, tokenizer: Tokenizer, sides: int = 2) -> bool:
    """
    Return whether a tokenizer could come from the user's file or folder, without reading text.

    `sides`: 1 to check only the source side, 2 to check both sides.

    Raises the errors of `tokenizer_from_files` for files that cannot be read.
    """
    loaded = read_models(path)[0] if path.is_dir() else read_given(path)
    own = tokenizer.models[:sides]
    if isinstance(loaded, list | SentencePieceModel):
        models = loaded if isinstance(loaded, list) else [loaded]
        pairs = zip(own, (models[0], models[-1]), strict=False)
        return all(model.files() == original.files() for model, original in pairs)
    files = [model.files() for model in own]
    if isinstance(loaded, CodesFile):
        return all(side.get("codes") == loaded.content for side in files)
    words = set(loaded.words)
    return all(
        side.keys() == {"vocabulary.json"}
        and words.issuperset(Vocabulary.from_bytes(side["vocabulary.json"]).pieces)
        for side in files
    )


def _check_shared(models: Sequence[SubwordModel], shared: bool, path: Path) -> None:
    """Refuse a shared model if separate models are required, and vice versa."""
    if shared != share_vocabulary(models):
        raise TokenizerError(
            f"data.shared_vocabulary must be {str(not shared).lower()} for the tokenizer in "
            f"{path}, which has {'two vocabularies' if shared else 'one vocabulary'}, but is "
            f"{str(shared).lower()}; change data.shared_vocabulary."
        )
