"""
The explorer: one self-contained page with attention, decoding steps and beam.

The page's code is in ``visualise/web``: scripts without imports, which together define the single
name ``heedfulExplorer``. A self-contained file embeds the whole code; a server sends the results of
`explorer_script` and `explorer_styles`.
"""

import base64
import hashlib
import html
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template

from heedful.visualise.figure_files import cut_end, write_output
from heedful.visualise.record import ExplorerRecord

_TAB_TITLE = 80  # maximum characters in the browser's tab; the page itself shows the whole title
# The order of the scripts in the page; the last script builds the explorer from the others.
_SCRIPTS = (
    "elements",
    "colors",
    "weights",
    "tables",
    "lines",
    "multiples",
    "steps",
    "layout",
    "beam",
    "explorer",
)


@cache
def explorer_script() -> str:
    """Return the explorer's code."""
    # The code makes no network requests and writes no markup and no style attributes. Therefore, it
    # runs under a Content-Security-Policy that allows only scripts of the same origin.
    parts = "\n".join(_read(f"{name}.js") for name in _SCRIPTS)
    return f"(() => {{\n'use strict';\n{parts}\nglobalThis.heedfulExplorer = explore;\n}})();\n"


@cache
def explorer_styles() -> str:
    """Return the explorer's style sheet, which follows the system's light or dark theme."""
    return _read("explorer.css")


def explorer_page(record: ExplorerRecord) -> str:
    """Build one HTML page that needs no other file and no network."""
    # Text is embedded in the page only as data. The Content-Security-Policy lists the script and
    # the style sheet by their checksums and allows nothing else.
    script = f"\n{explorer_script()}{_read('page.js')}"
    styles = f"\n{explorer_styles()}{_read('page.css')}"
    policy = (
        f"default-src 'none'; script-src {_checksum(script)}; style-src {_checksum(styles)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return Template(_read("page.html")).substitute(
        title=html.escape(cut_end(record.title, _TAB_TITLE)),
        policy=html.escape(policy, quote=False),
        script=script,
        styles=styles,
        # Inside a script element, only “<” can begin a tag that ends the data.
        document=record.to_json().replace("<", "\\u003c"),
    )


def write_explorer(record: ExplorerRecord, path: Path) -> None:
    """
    Write the page to a file.

    The file is written atomically; the same record gives the same bytes.

    Raises `StorageError` if the file cannot be written.
    """
    write_output(path, explorer_page(record).encode(), "page")


def _read(name: str) -> str:
    """Read a file in ``visualise/web``."""
    return (files("heedful.visualise") / "web" / name).read_text(encoding="utf-8")


def _checksum(text: str) -> str:
    """Compute the checksum of an inline script or style sheet for a Content-Security-Policy."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
