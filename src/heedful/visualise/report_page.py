"""
A figure with a caption and numbers, in one self-contained file.

A PNG, SVG or PDF file has only the picture. An HTML file has the picture as SVG, a caption, and a
table of the numbers for readers who cannot see the picture.
"""

import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from heedful.visualise.figure_files import (
    PICTURES,
    check_ending,
    printable,
    save_figure,
    write_output,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PAGE = ".html"
_TEMPLATE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>
:root { color-scheme: light dark; --ink: #2b2f36; --page: #f6f7f9; --rule: #d5dae1 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #dfe3e8; --page: #17191d; --rule: #3a404a }
}
body { margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: var(--ink);
  background: var(--page); font: 1rem/1.5 system-ui, sans-serif }
h1 { font-size: 1.3rem }
figure { margin: 0 }
.picture { background: white; border-radius: .5rem; overflow-x: auto; padding: .5rem }
.picture svg { display: block; margin: 0 auto; height: auto; max-width: none }
figcaption { margin: 1rem 0; max-width: 45rem }
summary { cursor: pointer }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .15rem 1rem .15rem 0; border-bottom: 1px solid var(--rule) }
@media print { body { margin: 0; background: white; color: black } summary { display: none } }
</style>
</head>
<body>
<h1>$title</h1>
<figure>
<div class="picture" role="img" aria-label="$title" tabindex="0">
$picture
</div>
<figcaption>$caption</figcaption>
</figure>
<details open>
<summary>The numbers</summary>
<table>
<thead><tr>$head</tr></thead>
<tbody>
$body
</tbody>
</table>
</details>
</body>
</html>
""")


@dataclass(frozen=True)
class ReportPage:
    """The text around a picture; only an HTML page shows all of it."""

    title: str
    """Title in a few words."""
    caption: str
    """Sentences that describe the picture."""
    rows: Sequence[tuple[str, ...]]
    """The formatted numbers; the first row has the names of the columns."""


def check_report_ending(out: Path) -> None:
    """
    Refuse a file suffix that is not a format of report pages.

    The check is fast, so it can be called before the work begins.

    Raises `SettingError` if the suffix is not ``.png``, ``.svg``, ``.pdf`` or ``.html``.
    """
    check_ending(out, (*PICTURES, _PAGE))


def save_report_page(figure: "Figure", out: Path, sheet: ReportPage) -> None:
    """
    Write a picture, or a page with its caption and numbers.

    The file is written atomically. An HTML page makes no network requests.

    Raises `StorageError` if the file cannot be written.
    """
    if out.suffix.lower() != _PAGE:
        save_figure(figure, out)
        return
    svg = io.StringIO()
    figure.savefig(svg, format="svg", bbox_inches="tight", pad_inches=0.1, metadata={"Date": None})
    picture, (header, *rows) = svg.getvalue(), sheet.rows
    page = _TEMPLATE.substitute(
        title=_escape(sheet.title),
        caption=_escape(sheet.caption),
        picture=picture[picture.index("<svg") :],
        head="".join(f'<th scope="col">{_escape(name)}</th>' for name in header),
        body="\n".join(_row(row) for row in rows),
    )
    write_output(out, page.encode(), "figure")


def _row(texts: Sequence[str]) -> str:
    """Format a row of the table as HTML, with its first cell as header."""
    first, *others = map(_escape, texts)
    cells = "".join(f'<td dir="auto">{cell}</td>' for cell in others)
    return f'<tr><th scope="row" dir="auto">{first}</th>{cells}</tr>'


def _escape(text: str) -> str:
    """Escape text for HTML."""
    return html.escape(printable(text))
