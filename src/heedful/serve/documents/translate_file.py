"""Translation of a file as a whole, without a server."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from heedful.errors import TextError
from heedful.files import open_ordinary
from heedful.search.settings import SearchOptions
from heedful.serve.documents.file_kinds import (
    FILE_KINDS,
    file_ending,
    read_file_content,
    split_text,
)
from heedful.text.reading.terms import Terms
from heedful.translation.engine import TranslationEngine

_MOST_BYTES = 1 << 26
_WINDOW = 2048


def read_file(path: Path) -> bytes:
    """Read a file; raise `TextError` if it cannot be read or is too large."""
    try:
        with open_ordinary(path) as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise TextError(
            f"{path} must be a file that can be read, but the system says "
            f"“{error.strerror or error}”; correct the name or the permissions."
        ) from error
    if len(content) > _MOST_BYTES:
        raise TextError(
            f"{path} must be at most {_MOST_BYTES >> 20} MiB, but it is larger; split the file."
        )
    return content


def translate_file(
    translator: TranslationEngine,
    path: Path,
    options: SearchOptions,
    *,
    language: str,
    tag: str = "",
    aligns: bool = True,
    glossary: Mapping[str, str] | None = None,
    protected: Sequence[str] | None = None,
    warn: Callable[[str], None] | None = None,
) -> bytes:
    """
    Translate a file, and return the content of a file of the same kind.

    `language`: language of the text, for splitting it into sentences. `tag`: language tag before
    every sentence. `aligns`: whether the engine aligns words, so that tags inside a sentence follow
    their words. `glossary`, `protected`: terms of the user.

    Raises `TextError` if the file cannot be read, is too large or unsafe, or does not match its
    suffix.
    """
    ending = file_ending(path.name)
    try:
        text, write = read_file_content(ending, read_file(path))
    except TextError as error:
        raise error if str(error).startswith(str(path)) else TextError(f"{path}: {error}") from None

    rule = translator.reader.cut_rule(Terms.of(glossary, protected), tag)
    layout = split_text(text, FILE_KINDS[ending].form, language, rule)
    lines = [f"{tag} {piece}" if tag else piece for piece in layout.pieces]
    translations = []
    needs_links = aligns and any(layout.linked)
    for start in range(0, len(lines), _WINDOW):
        translations += translator.translate(
            lines[start : start + _WINDOW],
            options,
            alignments=needs_links,
            glossary=glossary,
            protected=protected,
            first_line=start + 1,
            warn=warn,
        )
    links = [
        [(i - bool(tag), j) for i, j in translation.alignment.links if i >= bool(tag)]
        if translation.alignment
        else None
        for translation in translations
    ]
    return write(layout.fill([translation.text for translation in translations], links))
