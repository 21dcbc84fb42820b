"""The files that `heedful translate` translates as a whole; needs no optional package."""

from pathlib import Path

DOCUMENTS = (".html", ".htm", ".srt", ".vtt", ".md", ".docx", ".odt")
"""Endings of their names."""


def is_document(path: Path | None) -> bool:
    """Return whether a file is translated as a whole, and not line by line."""
    return path is not None and path.suffix.lower() in DOCUMENTS
