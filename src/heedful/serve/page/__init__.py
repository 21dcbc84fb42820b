"""
The web page: its files, their paths, and its content security policy.

Needs no web framework: the server sends the files of `page_files` with `PAGE_HEADERS`.
"""

from hashlib import sha256
from importlib.resources import files
from pathlib import PurePath
from types import MappingProxyType
from typing import NamedTuple

from heedful.visualise.explorer import explorer_script, explorer_styles

# Nothing but files of this server: no inline script or style, no other host, no frame around it.
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
    """For the header ``Content-Type``."""
    tag: str
    """For the header ``ETag``, quotation marks included; changes with the content."""


def page_files() -> dict[str, PageFile]:
    """Read every file of the page."""
    # The attention explorer is the same code as in the stand-alone file of `heedful attend`. All
    # addresses are relative, so that page and routes may lie behind a proxy that adds a path
    # prefix.
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
    """Describe one file, whose kind is that of its name."""
    tag = sha256(content).hexdigest()[:20]
    return PageFile(content, _KINDS[PurePath(name).suffix], f'"{tag}"')
