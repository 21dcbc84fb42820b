"""
The kinds of files that are translated as a whole, by their suffixes.

The kind of a file determines how its text is split. The translation is written as a file of the
same kind. Markdown and office documents need the extra `documents`.
"""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Literal, NamedTuple

from heedful.errors import TextError
from heedful.serve.documents.html_document import Markup, visible_text
from heedful.serve.documents.subtitles import Subtitles, cue_text, is_subtitles
from heedful.text.sentences import Fits, TextLayout, keep_whole, split
from heedful.text.wrapped_lines import join_wrapped

Form = Literal["text", "html", "sentence", "wrapped", "markdown", "office"]
"""How a text is split: a `sentence` is not split, and the lines of `wrapped` text are joined."""
Layout = TextLayout | Markup | Subtitles
"""The sentences of a text, and everything between them."""


class ReadFile(NamedTuple):
    """A file that was read."""

    text: str
    """The text that is split and translated."""
    write: Callable[[str], bytes]
    """A function that returns the content of the file with another text."""


class FileKind(NamedTuple):
    """A kind of file."""

    form: Form
    media_type: str
    read: Callable[[bytes], ReadFile]
    """A function that reads a file; it raises `TextError` for a file of another kind."""
    needs: str = ""
    """A package of the extra `documents` that reading needs."""


def _read_text(content: bytes) -> ReadFile:
    """Read a text file."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TextError(
            "the file must be text in UTF-8, but it is not; save it in UTF-8."
        ) from None
    if "\0" in text:
        raise TextError(
            "the file must be text in UTF-8, but it holds NUL characters, as UTF-16 and binary "
            "files do; save it in UTF-8."
        )
    return ReadFile(text, str.encode)


def _read_office(function: str, content: bytes) -> ReadFile:
    """Read an office document with a function of `heedful.serve.documents.office_document`."""
    read = resolve_name(f"heedful.serve.documents.office_document:{function}")
    return ReadFile(*read(content))


FILE_KINDS = {
    ".txt": FileKind("text", "text/plain; charset=utf-8", _read_text),
    ".html": FileKind("html", "text/html; charset=utf-8", _read_text),
    ".htm": FileKind("html", "text/html; charset=utf-8", _read_text),
    ".srt": FileKind("text", "application/x-subrip; charset=utf-8", _read_text),
    ".vtt": FileKind("text", "text/vtt; charset=utf-8", _read_text),
    ".md": FileKind("markdown", "text/markdown; charset=utf-8", _read_text, "markdown_it"),
    ".docx": FileKind(
        "office",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        partial(_read_office, "read_docx"),
        "lxml",
    ),
    ".odt": FileKind(
        "office",
        "application/vnd.oasis.opendocument.text",
        partial(_read_office, "read_odt"),
        "lxml",
    ),
}
"""The kinds of files, by their suffixes."""


def file_ending(name: str) -> str:
    """Return the suffix of a file name; empty if files with this suffix cannot be translated."""
    return next((ending for ending in FILE_KINDS if name.lower().endswith(ending)), "")


def readable_endings() -> list[str]:
    """List the endings of the files that can be read with the installed packages."""
    return [
        ending for ending, kind in FILE_KINDS.items() if not kind.needs or find_spec(kind.needs)
    ]


def read_file_content(ending: str, content: bytes) -> ReadFile:
    """Read a file; raises `TextError` for a file of another kind, or if an extra is missing."""
    if ending not in readable_endings():
        raise TextError(
            "reading this file needs the extra `documents`, which is not installed; install it "
            "with: pip install 'heedful[documents]'."
        )
    return FILE_KINDS[ending].read(content)


def split_text(text: str, form: Form, language: str, fits: Fits) -> Layout:
    """Split a text into sentences; plain text with time stamps counts as subtitles."""
    if form == "html":
        return Markup.parse(text, language, fits)
    if form == "sentence":
        return keep_whole(text, fits)
    if form == "wrapped" and not is_subtitles(text):
        return split(join_wrapped(text), language, fits)
    if form == "markdown":
        from heedful.serve.documents.markdown_document import parse_markdown

        return parse_markdown(text, language, fits)
    if form == "office":
        from heedful.serve.documents.office_document import parse_office

        return parse_office(text, language, fits)
    return (
        Subtitles.parse(text, language, fits) if is_subtitles(text) else split(text, language, fits)
    )


def words_of(text: str, form: Form) -> str:
    """Extract the visible words of a text, for the detection of its language."""
    if form == "html":
        return visible_text(text)
    if form == "office":
        from heedful.serve.documents.office_document import office_words

        return office_words(text)
    return cue_text(text) if form in ("text", "wrapped") and is_subtitles(text) else text
