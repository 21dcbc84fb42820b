r"""
Text on standard output and standard error, whatever their encoding.

::

    UTF-8      unchanged
    others     a missing character becomes a similar one (_ for U+2581) or its code (\u4e2d)

Lines that another program reads, such as translations, are UTF-8 everywhere.
"""

import codecs
import io
import json
import os
import sys
from typing import Any

import typer

from heedful.errors import escape_controls

_SIMILAR = {
    **dict.fromkeys("“”„", '"'),
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("–—−─┬┴", "-"),
    **dict.fromkeys("│├┤┐┘", "|"),
    **dict.fromkeys("└", "`"),
    **dict.fromkeys("·•", "*"),
    "…": "~",
    "▁": "_",
    "×": "x",
    "→": ">",
    "\u202f": " ",
    "\u00a0": " ",
}
"""Characters of tables, trees and sentences, each with a replacement of the same width."""
_HANDLER = "heedful-similar"
# ASCII under another name, because typer writes UTF-8 to a stream whose encoding is “ascii”.
_ASCII = "heedful-ascii"


def fit_streams() -> None:
    """Make standard output and standard error accept any text."""
    codecs.register_error(_HANDLER, _replace)
    codecs.register(_find_codec)
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.TextIOWrapper):
            continue
        encoding = codecs.lookup(stream.encoding).name
        # With “surrogateescape”, a file name that is not valid UTF-8 keeps its bytes.
        if encoding != "utf-8" or stream.errors != "surrogateescape":
            stream.reconfigure(
                encoding=_ASCII if encoding == "ascii" else encoding, errors=_HANDLER
            )


def echo(text: str) -> None:
    """Print text that contains user input to standard output."""
    typer.echo(escape_controls(text))


def write_utf8() -> None:
    """Set standard output to UTF-8 with uniform line endings, for lines that a program reads."""
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(encoding="utf-8", errors="strict", newline="\n")


def read_argument(text: str) -> str:
    """Decode a command-line argument as UTF-8, even if the locale has another encoding."""
    try:
        return os.fsencode(text).decode("utf-8")
    except UnicodeError:
        return text


def echo_json(content: Any) -> None:
    """Print JSON, with escapes if standard output is not UTF-8."""
    is_utf8 = codecs.lookup(sys.stdout.encoding or "utf-8").name == "utf-8"
    typer.echo(json.dumps(content, indent=2, ensure_ascii=not is_utf8))


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(_SIMILAR.get(letter) or _number(letter) for letter in lacking), error.end


def _number(letter: str) -> str:
    """Write a character, or a byte that is not a character, as a Python escape sequence."""
    if "\udc80" <= letter <= "\udcff":
        return f"\\x{ord(letter) - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode("ascii")


def _find_codec(name: str) -> codecs.CodecInfo | None:
    """Return the ASCII codec if the name is `_ASCII`; Python asks for every unknown encoding."""
    if name != _ASCII.replace("-", "_"):
        return None
    ascii_codec = codecs.lookup("ascii")
    return codecs.CodecInfo(
        ascii_codec.encode,
        ascii_codec.decode,
        ascii_codec.streamreader,
        ascii_codec.streamwriter,
        ascii_codec.incrementalencoder,
        ascii_codec.incrementaldecoder,
        name=_ASCII,
    )
