"""The README as a reader follows it: its commands, and what it prints below them."""

import re
from typing import NamedTuple

from tests.support.pages import ROOT, FencedBlock, blocks, shell_commands

PATH = ROOT / "README.md"
TEXT = PATH.read_text(encoding="utf-8")
CUT = "…"


class Shown(NamedTuple):
    """A line of shell, and the output that the page prints below it."""

    command: str
    lines: tuple[str, ...]
    """Of its standard output; the last one may be cut off after them."""


def shown_commands() -> list[Shown]:
    """List the commands of `sh` blocks; a `text` block is the output of the last one before it."""
    shown: list[Shown] = []
    following = [*blocks(PATH)[1:], FencedBlock("", "")]
    for block, after in zip(blocks(PATH), following, strict=True):
        if block.language == "sh":
            *before, last = shell_commands(block.text)
            output = after.text.splitlines() if after.language == "text" else []
            shown += [Shown(command, ()) for command in before]
            shown.append(Shown(last, tuple(output)))
    return shown


def is_like(output: str, lines: tuple[str, ...], numbers_within: float | None) -> bool:
    """
    Whether a command has printed some lines, up to its numbers.

    `numbers_within`: how far a number may be from the one that is shown; None for any number.
    """
    printed = output.splitlines()
    if lines and lines[-1] == CUT:
        lines = lines[:-1]
        printed = printed[: len(lines)]
    if [_words(line) for line in printed] != [_words(line) for line in lines]:
        return False
    pairs = zip(_numbers(printed), _numbers(lines), strict=True)
    return numbers_within is None or all(abs(a - b) <= numbers_within for a, b in pairs)


def _words(line: str) -> list[str]:
    """Split a line where it has spaces or numbers."""
    return re.sub(r"\d+(\.\d+)?", " 0 ", line).split()


def _numbers(lines: list[str] | tuple[str, ...]) -> list[float]:
    """Read all numbers."""
    return [float(number) for line in lines for number in re.findall(r"\d+(?:\.\d+)?", line)]
