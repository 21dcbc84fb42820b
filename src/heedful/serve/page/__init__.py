"""
The web page: its files, under which path each one is served, and what it may do.

No web framework here: the server gives out what `page_files` lists, with `PAGE_HEADERS`.
"""

from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import NamedTuple

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
# The explorer of attention is the same code as in the stand-alone file.
_FOLDERS = ("heedful.serve.page", "heedful.visualise.page")


class PageFile(NamedTuple):
    """
    Hold one file of the page.

    Attributes
    ----------
    content : bytes
        What is sent.
    media_type : str
        For the header ``Content-Type``.
    tag : str
        For the header ``ETag``, quotation marks included; changes with the content.

    Notes
    -----
    Read once, when the server starts.
    """

    content: bytes
    media_type: str
    tag: str


def page_files() -> dict[str, PageFile]:
    """
    Read every file of the page.

    Returns
    -------
    dict of str to PageFile
        By path: ``/`` is the page itself, the others lie under ``/page/``.

    Notes
    -----
    The page names its own files and the server's routes relative to itself, so that both may lie
    behind a proxy that adds a folder to the address.
    """
    found = [file for folder in _FOLDERS for file in _files(folder) if _ending(file) in _KINDS]
    paths = {file: "/" if file.name == "index.html" else f"/page/{file.name}" for file in found}
    return {path: _read(file) for file, path in sorted(paths.items(), key=lambda item: item[1])}


def _files(package: str) -> list[Traversable]:
    """List what lies in a package's folder; it need not hold any Python."""
    parent, name = package.rsplit(".", 1)
    folder = files(parent) / name
    return [file for file in folder.iterdir() if file.is_file()] if folder.is_dir() else []


def _ending(file: Traversable) -> str:
    """Tell what a file is by its name."""
    return file.name[file.name.rfind(".") :]


def _read(file: Traversable) -> PageFile:
    """Read one file."""
    content = file.read_bytes()
    return PageFile(content, _KINDS[_ending(file)], f'"{sha256(content).hexdigest()[:20]}"')
