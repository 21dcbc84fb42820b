"""The text of a line that the model reads, and the positions of pieces that were cut out."""

from collections.abc import Sequence
from typing import NamedTuple

from heedful.text.reading.held import Piece

Span = tuple[int, int]
_CLOSING_MARKS = ".,;:!?…)]}»”’、。，！？：；）」』"


class Gap(NamedTuple):
    """The position of a piece that was cut out, or of a term that the model reads."""

    piece: Piece
    line: Span
    """Its span in the prepared line."""
    seen: Span
    """Its span in the text for the model; empty for a held piece."""
    spaced: tuple[bool, bool] = (True, True)
    """Whether a space or an end of the line is before it, and whether one is after it."""


class ModelLine(NamedTuple):
    """A line without held pieces."""

    text: str
    origins: tuple[tuple[int, int], ...]
    """For each part of `text`, its start in `text` and its start in the prepared line."""
    gaps: tuple[Gap, ...]

    def origin(self, place: int) -> int:
        """Return the position in the prepared line of a character that the model sees."""
        seen, line = max(pair for pair in self.origins if pair[0] <= place)
        return line + place - seen


def model_line(pieces: Sequence[Piece]) -> ModelLine:
    """Join the text of a line without its held pieces."""
    line = "".join(piece.text for piece in pieces)
    text, end = "", 0
    origins: list[tuple[int, int]] = []
    gaps: list[Gap] = []
    is_after_held_piece = False
    for piece in pieces:
        start, end = end, end + len(piece.text)
        if piece.kind == "held":
            # A dropped hyphen, such as the one in “3-year plan”, counts as a space.
            is_cut = piece.put != piece.text and piece.text[-1:] in "‐‑-"
            spaced = line[:start][-1:] in ("", " "), is_cut or line[end:][:1] in ("", " ")
            place = len(text.rstrip())
            gaps.append(Gap(piece, (start, end), (place, place), spaced))
            is_after_held_piece = True
            continue
        added = piece.text
        if is_after_held_piece:
            added, left = added.lstrip(), text.rstrip()
            text = left + _joint(left, text, added, piece.text)
            is_after_held_piece = not added
        if added:
            origins.append((len(text), end - len(added)))
        if piece.kind == "term":
            gaps.append(Gap(piece, (start, end), (len(text), len(text) + len(added))))
        text += added
    return ModelLine(text.rstrip(), tuple(origins), tuple(gaps))


def _joint(left: str, with_blank: str, right: str, with_lead: str) -> str:
    """Return the separator (a space or nothing) between the texts before and after a held piece."""
    if not left:
        return ""
    if not right or right != with_lead:
        return " "
    if with_blank != left:
        return "" if right[0] in _CLOSING_MARKS else " "
    return " " if left[-1].isalnum() and right[0].isalnum() else ""
