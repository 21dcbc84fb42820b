"""
The web page: its files, their paths, and its content security policy.

This module needs no web framework: the server sends the files of `page_files` with `PAGE_HEADERS`.
"""

from hashlib import sha256
from importlib.resources import files
from pathlib import PurePath
from types import MappingProxyType
from typing import NamedTuple

from heedful.visualise.explorer import explorer_script, explorer_styles

# The page loads only files of this server: no inline scripts or styles, no other host. No other
# page may show it in a frame.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = MappingProxyType(
    {
        "Content-Security-Policy": POLICY,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-cache",
    }
)
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class PageFile(NamedTuple):
    """One file of the page."""

    content: bytes
    media_type: str
    """Value of the header ``Content-Type``."""
    tag: str
    """Value of the header ``ETag``, including quotation marks; it changes with the content."""


def page_files() -> dict[str, PageFile]:
    """Read every file of the page."""
    # The attention explorer has the same code as the stand-alone file of `heedful attend`. All
    # addresses are relative, so that the server may run behind a proxy that adds a path prefix.
    contents = {
        file.name: file.read_bytes() for file in files(__name__).iterdir() if file.is_file()
    }
    contents["explorer.js"] = explorer_script().encode()
    contents["explorer.css"] = explorer_styles().encode()
    return {
        "/" if name == "index.html" else f"/page/{name}": page_file(name, content)
        for name, content in sorted(contents.items())
        if PurePath(name).suffix in _KINDS
    }


def page_file(name: str, content: bytes) -> PageFile:
    """Describe one file; its name determines its media type."""
    tag = sha256(content).hexdigest()[:20]
    return PageFile(content, _KINDS[PurePath(name).suffix], f'"{tag}"')
