"""Pages of results: tables in Markdown and JSON, and sentences about differences."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.experiments.record import write_json
from heedful.files import make_folder, replacing_file

Rows = list[tuple[str, ...]]
LEARNED = 1.0
"""BLEU or F1 below which a system has learned nothing useful and is not compared."""


@dataclass(frozen=True)
class ScoreDifference:
    """The difference between the scores of two systems on the same sentences."""

    better: str
    worse: str
    difference: float
    interval: tuple[float, float]
    """The 95% confidence interval of the difference."""
    score: str
    """The compared score, such as BLEU."""

    @property
    def sentence(self) -> str:
        """The conclusion from the difference."""
        low, high = self.interval
        numbers = f"by {self.difference:.1f} {self.score} (95% interval {low:+.1f} to {high:+.1f})"
        doubt = "the interval contains zero, so these sentences do not show which is better"
        ending = "" if low > 0 else f": {doubt}"
        return f"{self.better} is above {self.worse} {numbers}{ending}."


def learned_nothing(titles: Iterable[str]) -> list[str]:
    """State for each system that it has learned nothing useful."""
    return [
        capital(f"{title} has learned nothing useful in its training steps.") for title in titles
    ]


def capital(sentence: str) -> str:
    """Capitalize the first letter of a sentence, which may begin with the title of a system."""
    return sentence[:1].upper() + sentence[1:]


def align_columns(
    rows: Sequence[Sequence[str]], place: Callable[[str, int], str] = str.rjust
) -> list[str]:
    """
    Lay out a table for a terminal. `place` aligns the cells of all columns except the first.

    >>> align_columns([("system", "BLEU"), ("base", "9.5")])
    ['system  BLEU', 'base     9.5']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join((row[0].ljust(widths[0]), *map(place, row[1:], widths[1:]))).rstrip()
        for row in rows
    ]


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Lay out a table in Markdown."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "| --- " * len(rows[0]) + "|", *lines[1:]])


def table(heads: str, cells: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """
    Lay out a table in Markdown from a format string and the values of each row.

    `heads`: the headers of its columns, with bars between them. `cells`: the format of a row, as
    for `str.format`.

    >>> print(table("step | BLEU", "{step:,} | {bleu:.1f}", [{"step": 1000, "bleu": 1.52}]))
    | step | BLEU |
    | --- | --- |
    | 1,000 | 1.5 |
    """
    rule = " | ".join(["---"] * (heads.count(" | ") + 1))
    return "\n".join(f"| {line} |" for line in (heads, rule, *map(cells.format_map, rows)))


def with_names(rows: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert a mapping of rows to a list; each row gets its key as `name`."""
    return [{"name": name, **row} for name, row in rows.items()]


def code_block(lines: Iterable[str], language: str = "sh") -> str:
    """Format commands or their output as a Markdown code block."""
    return "\n".join([f"```{language}", *lines, "```"])


def fold(summary: str, parts: Iterable[str]) -> str:
    """Lay out a section that a reader can expand."""
    return "\n\n".join([f"<details><summary>{summary}</summary>", *parts, "</details>"])


def write_table(out: Path, name: str, page: str, plain: Mapping[str, Any]) -> None:
    """Write a table as Markdown and as JSON; creates the folder if it does not exist."""
    make_folder(out)
    write_json(out / f"{name}.json", plain)
    with replacing_file(out / f"{name}.md") as stream:
        stream.write(page)
