"""`heedful parse predict`."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.options import (
    Device,
    SearchPrecision,
    Threads,
    Weights,
    check_output,
    check_runs,
    refuse,
    say,
    warn,
    with_flags,
)
from heedful.cli.standard_input import STDIN, standard_input
from heedful.cli.terminal_text import write_utf8
from heedful.search.settings import SearchOptions

# Number of sentences that are sorted by length together.
_WINDOW = 512


@with_flags("search", SearchOptions, scores=("beam", "length_penalty"))
def predict(
    run: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="A parser's run folder; several form an ensemble."),
    ],
    search: dict[str, Any],
    input: Annotated[
        Path | None,
        typer.Option(
            help="File of sentences whose words are separated by spaces; by default, or with -, "
            "stdin."
        ),
    ] = None,
    trees: Annotated[
        Path | None,
        typer.Option(
            help="Parse the sentences of the trees in this file, and copy their parts of speech; "
            "- reads stdin."
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Output file; by default stdout.")] = None,
    weights: Weights = "default",
    scores: Annotated[
        bool,
        typer.Option(
            "--scores",
            help="Write a score and a tab before each tree: the log-probability divided by the "
            "length penalty, plus any coverage penalty.",
        ),
    ] = False,
    free: Annotated[
        bool,
        typer.Option(
            "--free",
            help="Search without the constraint that trees are well-formed; a malformed output is "
            "replaced by a flat tree.",
        ),
    ] = False,
    count_malformed: Annotated[
        bool,
        typer.Option(
            "--count-malformed",
            help="Search a second time without the constraint that trees are well-formed, and "
            "count malformed outputs.",
        ),
    ] = False,
    device: Device = "auto",
    precision: SearchPrecision = "auto",
    threads: Threads = 0,
) -> None:
    """Parse sentences: read lines of words, and write bracketed trees."""
    check_runs(run, "parse predict")
    if input is not None and trees is not None:
        refuse("--input", "and --trees both name sentences; give one.")
    check_output(output, {"--input": input, "--trees": trees})
    from heedful.files import replacing_file
    from heedful.tasks.parsing.parser import Parser

    def load(constrained: bool) -> Parser:
        return Parser.load(
            run,
            weights=weights,
            device=device,
            precision=precision,
            threads=threads,
            constrained=constrained,
        )

    parser = load(not free)
    second = load(False) if count_malformed and not free else None
    options = SearchOptions(**search)
    done = malformed = 0
    if output is None:
        write_utf8()
    sink = replacing_file(output) if output else nullcontext(sys.stdout)
    with sink as stream:
        sentences = enumerate(_sentences(input, trees), start=1)
        while window := list(islice(sentences, _WINDOW)):
            lines = [line for _, (line, _) in window]
            tags = None if trees is None else [tags for _, (_, tags) in window]
            parses = parser.parse_lines(lines, options, tags, window[0][0], warn)
            if second is not None:
                free_parses = filter(None, second.parse_lines(lines, options))
                malformed += sum(not parse.is_tree for parse in free_parses)
            for parse in parses:
                if parse is None:  # an empty line has no tree
                    print(file=stream)
                    continue
                done += 1
                malformed += free and not parse.is_tree
                score = f"{parse.score:.6f}\t" if scores else ""
                print(f"{score}{parse.tree}", file=stream)
            stream.flush()
    if (free or second is not None) and done:
        say(
            f"without the constraint that trees are well-formed, {malformed:,} of {done:,} outputs "
            f"({100 * malformed / done:.1f}%) are malformed: not trees over the sentence's words"
        )


def _sentences(input: Path | None, trees: Path | None) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Read the sentences, and the tags of their words if there are any."""
    from heedful.tasks.parsing.trees.sentence import split_words

    if trees is not None:
        from heedful.tasks.parsing.trees.clean import clean_tree
        from heedful.tasks.parsing.trees.read import parse_trees

        for tree in parse_trees(*_lines(trees)):
            clean = clean_tree(tree)
            yield ("", ()) if clean is None else (" ".join(clean.words), clean.tags)
        return
    for line in _lines(input)[0]:
        yield " ".join(split_words(line)), ()


def _lines(file: Path | None) -> tuple[Iterable[str], str]:
    """Read a file or stdin; return its lines, and its name for messages."""
    from heedful.text.lines import decode_lines, plain_lines

    if file is None or file == STDIN:
        return decode_lines(standard_input(), "the input"), "the input"
    return plain_lines(file), str(file)
