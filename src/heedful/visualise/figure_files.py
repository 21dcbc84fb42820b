"""Shared parts of figures: file formats, fonts, colors, atomic writes."""

import logging
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import MissingExtra, SettingError, StorageError
from heedful.files import write_whole
from heedful.visualise.fonts import font_families

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#2b2f36"
_GRID = "#e3e6ea"
PICTURES = (".png", ".svg", ".pdf")

# Formats that contain the drawn characters; in the other format, the viewer chooses the fonts.
_DRAWN = (".png", ".pdf")


def check_ending(out: Path, formats: Sequence[str] = PICTURES) -> None:
    """
    Refuse a file suffix that is not a figure format.

    The check is fast, so it can be called before the work begins.

    Raises `SettingError` if `out` has none of the suffixes in `formats`.
    """
    if out.suffix.lower() not in formats:
        raise SettingError(
            f"The file of a figure must end in one of {', '.join(formats)}, but {str(out)!r} has "
            f"{f'the ending {out.suffix!r}' if out.suffix else 'no ending'}; choose one of these."
        )


def check_drawing() -> None:
    """Import matplotlib, which drawing needs anyway; raises `MissingExtra` if it is missing."""
    try:
        import_module("matplotlib")
    except ImportError as error:
        raise MissingExtra(
            "Drawing needs matplotlib, which is not installed; "
            "install it with: pip install 'heedful[plot]'"
        ) from error


def draw_grid(axes: "Axes") -> None:
    """Draw a grid behind the data, and a frame on only two sides."""
    axes.grid(color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(color=INK, linewidth=0.6)


@contextmanager
def drawing(letters: float, texts: Iterable[str] = (), ending: str = "") -> Iterator[None]:
    """
    Configure matplotlib for one figure.

    `letters`: the font size in points.
    `texts`: all texts that users provide, for the choice of fonts.
    `ending`: suffix of the output file, for a warning about characters that no installed font has.
    """
    # The caller's matplotlib settings are restored afterward.
    check_drawing()
    from matplotlib import rc_context

    settings = rc_context(
        {
            "font.family": font_families(texts, warns=ending.lower() in _DRAWN),
            "font.size": letters,
            "text.parse_math": False,  # a dollar sign is an ordinary character
            "svg.fonttype": "none",  # text stays text, in the viewer's fonts
            "svg.hashsalt": "heedful",
            "pdf.fonttype": 42,
        }
    )
    # `font_families` warns of characters without a font; a missing bold face does not matter.
    logger = logging.getLogger("matplotlib.font_manager")
    level = logger.level
    with settings, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)


def printable(text: str) -> str:
    """Escape control characters, which no figure may contain."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def cut_end(text: str, longest: int) -> str:
    """
    Cut the end of a text that is too long for a picture.

    >>> cut_end("attention", 6), cut_end("at", 6)
    ('atten…', 'at')
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def three_digits(value: float) -> str:
    """
    Format a positive number with three digits, or as an integer if it is 100 or more.

    Unlike the format ``.3g``, it keeps trailing zeros and never uses exponents.

    >>> [three_digits(value) for value in (1.2, 12.34, 12345.6)]
    ['1.20', '12.3', '12,346']
    """
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}"


def save_figure(figure: "Figure", out: Path, more: Iterable["Figure"] = ()) -> None:
    """Write a figure atomically; raises `StorageError` if the file cannot be written."""
    write_output(out, figure_content(figure, out.suffix.lower()[1:], more), "figure")


def figure_content(figure: "Figure", kind: str, more: Iterable["Figure"] = ()) -> bytes:
    """Draw a figure as png, svg or pdf without a date, so equal figures have equal bytes."""
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    tight: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": 0.2}
    content = BytesIO()  # not a file: on a full disk, PdfPages would fail again when closing it
    if kind == "pdf":
        from matplotlib.backends.backend_pdf import PdfPages

        with PdfPages(content, metadata=undated) as pages:
            for page in chain([figure], more):
                pages.savefig(page, **tight)
    else:
        figure.savefig(content, format=kind, metadata=undated, **tight)
    return content.getvalue()


def write_output(out: Path, content: bytes, kind: str) -> None:
    """
    Atomically write a file that the user has named.

    `kind`: what the file is, for the error message. Raises `StorageError` if the file cannot be
    written; then no partial file is left.
    """
    try:
        write_whole(out, content)
    except OSError as error:
        raise StorageError(
            f"The {kind} {out} could not be written ({error.strerror or error}); name a file in "
            "an existing, writable folder with free space."
        ) from error
