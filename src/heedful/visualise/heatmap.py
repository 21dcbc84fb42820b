"""
Attention heat maps.

All figures have squares of the same size, so the page grows with the sentence and the words stay
readable. `heedful.visualise.multi_page` draws many layers at once.
"""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from heedful.arguments import checked
from heedful.visualise.figure_files import check_ending, drawing, printable, save_figure
from heedful.visualise.panels import LETTERS, draw_page, label


def attention_heatmap(
    weights: np.ndarray,
    row_tokens: Sequence[str],
    column_tokens: Sequence[str],
    out: Path,
    title: str = "",
) -> None:
    """
    Draw attention weights as a heat map.

    Several heads become small multiples with one color scale; the first panel is their mean. The
    file is written atomically, and the same input gives the same bytes. In PNG and PDF, a character
    that no installed font has is drawn as a box, with a warning.

    Raises `SettingError` if `check_ending` refuses `out`. Raises `ValueError` if the
    shape of `weights` does not fit the tokens, or a weight is not finite. Raises `StorageError` if
    the file cannot be written.
    """
    check_ending(out)
    AttentionPlot(weights, row_tokens, column_tokens, title).save(out)


class AttentionPlot:
    """A heat map of attention for notebooks; `figure` is its matplotlib figure."""

    def __init__(
        self,
        weights: np.ndarray,
        row_tokens: Sequence[str],
        column_tokens: Sequence[str],
        title: str = "",
    ) -> None:
        panels = _panels(np.asarray(weights, dtype=float), len(row_tokens), len(column_tokens))
        self._texts = [title, *row_tokens, *column_tokens]
        with drawing(LETTERS, self._texts):
            rows, columns = [*map(label, row_tokens)], [*map(label, column_tokens)]
            self.figure = draw_page(panels, rows, columns, printable(title))

    @checked
    def save(self, out: str | Path) -> None:
        """Write a file in the format of its suffix: ``.png``, ``.svg`` or ``.pdf``."""
        check_ending(Path(out))
        with drawing(LETTERS, self._texts, Path(out).suffix):
            save_figure(self.figure, Path(out))

    def _repr_png_(self) -> bytes:
        """Draw the heat map for a notebook."""
        picture = io.BytesIO()
        with drawing(LETTERS, self._texts, ".png"):
            self.figure.savefig(picture, format="png", bbox_inches="tight")
        return picture.getvalue()


def _panels(weights: np.ndarray, rows: int, columns: int) -> dict[str, np.ndarray]:
    """Check the shape of the weights, and return the weights of each panel by its title."""
    if weights.shape[-2:] != (rows, columns) or weights.ndim not in (2, 3) or not weights.size:
        raise ValueError(
            f"weights must have shape ({rows}, {columns}) or (heads, {rows}, {columns}), without "
            f"dimensions of 0, but have shape {weights.shape}"
        )
    if not np.isfinite(weights).all():
        raise ValueError("weights must be finite numbers, but some are infinite or NaN")
    if weights.ndim == 2:
        return {"": weights}
    if len(weights) == 1:
        return {"head 1": weights[0]}
    heads = {f"head {number}": head for number, head in enumerate(weights, start=1)}
    return {"mean": weights.mean(axis=0), **heads}
