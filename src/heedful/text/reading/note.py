"""Notes on the preparation of a line, for JSON and for the summary of a text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple

from heedful.text.nouns import count_noun

Where = Literal["edge", "aligned", "end"]
"""How a position was chosen: at the edge as in the source, by word links, or else at the end."""


class HeldNote(NamedTuple):
    """A piece that was held back, or one of the user's terms."""

    text: str
    """Its text in the source."""
    put: str
    """Its text in the translation."""
    where: Where

    def to_dict(self) -> dict[str, str]:
        """Convert to plain values; the replacement is left out if it equals the text."""
        put = {} if self.put == self.text else {"put": self.put}
        return {"text": self.text, **put, "where": self.where}


@dataclass(frozen=True)
class ReadingNote:
    """
    Changes to a line besides the normalization of its characters.

    The defaults mean that nothing was changed.
    """

    copied: bool = False
    """Whether the line has no letter to translate, so that the model did not see it."""
    held: tuple[HeldNote, ...] = ()
    """Pieces that were held back, and their replacements."""
    case: str = ""
    """Kind of case that was restored, such as ``upper``; ``lost`` if word links were missing."""
    numbers: tuple[str, ...] = ()
    """Numbers of the source that the translation lacks."""
    loops: int = 0
    """Number of loops that were cut in the translation."""
    sentences: int = 1
    """Number of parts into which a line that is too long for the model was split."""
    cut: bool = False
    """Whether a line that is too long was cut off instead."""

    def to_dict(self) -> dict[str, Any]:
        """Convert the note to plain values; empty if nothing was changed."""
        values = {
            setting.name: getattr(self, setting.name)
            for setting in fields(self)
            if getattr(self, setting.name) != setting.default
        }
        if self.held:
            values["held"] = [piece.to_dict() for piece in self.held]
        if self.numbers:
            values["numbers"] = list(self.numbers)
        return values

    @property
    def at_end(self) -> int:
        """Number of pieces put at the end because their positions are unknown."""
        return sum(piece.where == "end" for piece in self.held)


def joined_notes(notes: Iterable[ReadingNote]) -> ReadingNote:
    """Join the notes of the sentences that a line was split into."""
    several = list(notes)
    if len(several) == 1:
        return several[0]
    cases = dict.fromkeys(note.case for note in several if note.case)
    return replace(
        several[0],
        copied=all(note.copied for note in several),
        held=tuple(piece for note in several for piece in note.held),
        case=" ".join(cases),
        numbers=tuple(number for note in several for number in note.numbers),
        loops=sum(note.loops for note in several),
        sentences=len(several),
    )


class ReadingCounts:
    """Counts of lines and pieces that a user should check in the translations of a text."""

    def __init__(self) -> None:
        self.numbers = self.number_lines = self.at_end = self.end_lines = 0

    def add(self, note: ReadingNote | None) -> None:
        """Add the note of a line."""
        if note is not None:
            self.numbers += len(note.numbers)
            self.number_lines += bool(note.numbers)
            self.at_end += note.at_end
            self.end_lines += note.at_end > 0

    def warnings(self) -> Iterator[str]:
        """Write a sentence for each count that is not zero."""
        if self.numbers:
            yield (
                "translations lack numbers of their sources "
                f"({count_noun(self.numbers, 'number')} in "
                f"{count_noun(self.number_lines, 'line')}); --format jsonl lists these numbers; "
                "to keep them, list them in a file and name it with --protected."
            )
        if self.at_end:
            yield (
                "text that the model did not read, such as emoji, is at the end of translations "
                f"({count_noun(self.at_end, 'piece')} in {count_noun(self.end_lines, 'line')}), "
                "because no alignment shows its position."
            )
