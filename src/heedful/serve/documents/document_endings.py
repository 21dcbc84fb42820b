"""Suffixes of the files that `heedful translate` translates as a whole."""

from pathlib import Path

DOCUMENTS = (".html", ".htm", ".srt", ".vtt", ".md", ".docx", ".odt")
"""Suffixes of files that are translated as a whole."""


def is_document(path: Path | None) -> bool:
    """Return whether a file is translated as a whole instead of line by line."""
    return path is not None and path.suffix.lower() in DOCUMENTS
