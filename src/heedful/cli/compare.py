"""`heedful compare`."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.options import (
    Device,
    Json,
    Precision,
    RunPath,
    Threads,
    Weights,
    refuse,
    run_argument,
)
from heedful.cli.terminal_text import echo_json
from heedful.errors import escape_controls

if TYPE_CHECKING:
    from rich.console import Console

    from heedful.analysis.compare import RunComparison
    from heedful.evaluation.comparison import ComparedSentence

_WIDTH_OF_A_FILE = 100


def compare(
    first: RunPath,
    second: Annotated[Path, run_argument("Another run folder.")],
    source: Annotated[Path | None, typer.Option(help="Text to translate with both runs.")] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="File of reference translations; may be repeated."),
    ] = None,
    weights: Weights = "default",
    beam: Annotated[
        int | None, typer.Option(min=1, help="Beam size; by default each run's own.")
    ] = None,
    sentences: Annotated[
        int,
        typer.Option(min=0, help="Number of sentences to show, largest difference first."),
    ] = 10,
    as_json: Json = False,
    device: Device = "auto",
    precision: Precision = "auto",
    threads: Threads = 0,
) -> None:
    """
    Compare two runs: settings, cost, scores, sentences.

    With --source and --reference, both runs translate a text. The command then prints BLEU, chrF,
    exact match and CER with paired significance tests. It also prints the sentences whose
    translations differ most in chrF, with the differing words in square brackets.
    """
    if (source is None) != (not reference):
        refuse("--source", "and --reference must be given together, but one is missing.")
    from heedful.analysis.compare import HeldOutText, compare_runs

    options: dict[str, Any] = {"weights": weights, "beam": beam, "sentences": sentences}
    options |= {"device": device, "precision": precision, "threads": threads}
    text = None
    if source is not None:
        text = HeldOutText(source, reference or [], **options)
    for name, value in options.items():
        if text is None and value != getattr(HeldOutText, name):
            refuse(f"--{name}", "needs --source and --reference, the text to translate.")
    comparison = compare_runs(first, second, text)
    if as_json:
        echo_json(comparison.to_dict())
    else:
        _print(comparison)


def _print(comparison: "RunComparison") -> None:
    """Print tables that fit the width of the terminal, or 100 columns elsewhere."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console = Console(highlight=False, width=_WIDTH_OF_A_FILE)
    with console.capture() as printed:
        _print_all(console, comparison)
    for line in printed.get().splitlines():
        typer.echo(line.rstrip())


def _print_all(console: "Console", comparison: "RunComparison") -> None:
    """Print facts, settings, notes, scores and sentences."""
    names = comparison.names
    _table(console, "", names, _facts(comparison.facts))
    settings = [
        (name, _value(a), _value(b)) for name, (a, b) in sorted(comparison.settings.items())
    ]
    _table(console, "settings that differ", names, settings or [("none", "", "")])
    for note in comparison.notes:
        console.print(f"note: {escape_controls(note)}.", markup=False)
    if comparison.scores:
        _print_scores(console, comparison)
    for sentence in comparison.sentences:
        _print_sentence(console, names, sentence)


def _table(
    console: "Console", title: str, names: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Print a table with column names."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column(Text(title), overflow="fold")
    for name in names:
        table.add_column(Text(escape_controls(name)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(escape_controls(cell)) for cell in row))
    console.print(table)
    console.print()


def _facts(facts: dict[str, tuple[Any, Any]]) -> list[tuple[str, ...]]:
    """Return a row of cells for each fact about both runs."""
    from heedful.settings.registries import score_metrics
    from heedful.training.log import duration
    from heedful.visualise.figure_files import three_digits

    def row(name: str, key: str, write: Any, at: str = "") -> tuple[str, ...]:
        cells = []
        for side in (0, 1):
            value = facts[key][side]
            step = f" at step {facts[at][side]:,}" if at and value is not None else ""
            cells.append("-" if value is None else f"{write(value)}{step}")
        return name, *cells

    integer = "{:,.0f}".format
    rows = [
        row("parameters", "parameters", integer),
        row("source vocabulary", "source_vocabulary", integer),
        row("target vocabulary", "target_vocabulary", integer),
        row("steps", "steps", integer),
        row("target tokens", "target_tokens", integer),
        row("time", "hours", lambda hours: duration(3600 * hours)),
        row("counted FLOPs", "counted_flops", "{:.3g}".format),
        row("last training loss", "last_loss", "{:.3f}".format),
        row("best perplexity", "valid_perplexity", three_digits, "valid_perplexity_step"),
        *(
            row(f"best {metric.label}", metric.key, "{:.1f}".format, f"{metric.key}_step")
            for metric in score_metrics()
            if metric.key == "bleu" or any(facts[metric.key])
        ),
    ]
    return [*rows, row("weights", "weights", str)] if any(facts["weights"]) else rows


def _value(value: Any) -> str:
    """Format a setting as on the command line, and files as names with sizes."""
    if isinstance(value, list):
        return ", ".join(f"{file['file']} ({file['bytes']:,} bytes)" for file in value)
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)


def _print_scores(console: "Console", comparison: "RunComparison") -> None:
    """Print the scores, their difference and its significance."""
    rows = []
    for score in comparison.scores:
        a, b = score.scores
        sure = "significant" if score.p_value < 0.05 else "may be chance"
        p = "< 0.001" if score.p_value < 0.001 else f"{score.p_value:.3f}"
        rows.append((score.name, f"{a:.2f}", f"{b:.2f}", f"{b - a:+.2f}", f"{p}, {sure}"))
    _table(console, "", (*comparison.names, "difference", "p"), rows)
    for score in comparison.scores:
        console.print(score.signature, markup=False)


def _print_sentence(
    console: "Console", names: tuple[str, str], sentence: "ComparedSentence"
) -> None:
    """Print a sentence, its references and both translations with the differing words marked."""
    from rich.table import Table
    from rich.text import Text

    from heedful.evaluation.comparison import mark_differences

    a, b = sentence.chrf
    console.print()
    console.print(f"line {sentence.line:,}: chrF {a:.1f} and {b:.1f}", style="bold")
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_row("  source", Text(escape_controls(sentence.source)))
    for reference in sentence.references:
        table.add_row("  reference", Text(escape_controls(reference)))
    marked = mark_differences(*sentence.translations)
    for name, text in zip(names, marked, strict=True):
        line = Text(escape_controls(text))
        line.highlight_regex(r"\[[^\]]*\]", "bold red")
        table.add_row(Text(escape_controls(f"  {name}")), line)
    console.print(table)
