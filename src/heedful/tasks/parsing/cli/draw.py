"""`heedful parse draw`."""

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from heedful.cli.options import check_output, refuse, say
from heedful.cli.standard_input import STDIN, standard_input

if TYPE_CHECKING:
    from heedful.tasks.parsing.trees.differences import TreeDifference
    from heedful.tasks.parsing.trees.tree import Tree

# Width of a text file in columns; a terminal has its own width.
_WIDTH = 100
_PICTURES = (".png", ".pdf", ".jpg", ".jpeg", ".gif", ".html", ".eps", ".ps")


class _Drawing(NamedTuple):
    """A sentence whose trees are drawn."""

    number: int
    """Line number of the sentence, from 1."""
    tree: "Tree"
    predicted: "Tree | None" = None
    difference: "TreeDifference | None" = None
    """The differing phrases; None if no predicted trees are given."""


def draw(
    trees: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="File of trees, each on one or several lines; with --predicted, the gold trees; "
            "- reads stdin.",
        ),
    ],
    predicted: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw the trees of this file next to the gold trees, and mark differences; one "
            "tree per line, and an empty line for a missing tree.",
        ),
    ] = None,
    line: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Draw only the tree of line N (the N-th tree if trees span several lines); may be "
            "repeated.",
        ),
    ] = None,
    different: Annotated[
        bool,
        typer.Option(
            "--different", help="With --predicted: draw only trees in which a phrase differs."
        ),
    ] = False,
    traces: Annotated[
        bool,
        typer.Option("--traces", help="Without --predicted: draw traces and function tags too."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a picture of one tree if FILE ends in .svg, else text; by default, print "
            "text in the terminal.",
        ),
    ] = None,
) -> None:
    """Draw trees in the terminal or as a picture, and mark errors."""
    if predicted is None and different:
        refuse("--different", "compares trees; give --predicted too.")
    if predicted is not None and traces:
        refuse(
            "--traces",
            "cannot be used with --predicted, because predicted trees have no traces; leave it "
            "out.",
        )
    check_output(output, {"FILE": trees, "--predicted": predicted})
    if output is not None and output.suffix.lower() in _PICTURES:
        refuse("--output", f"must end in .svg, or in .txt for text, but is {output}.")
    from heedful.errors import TextError
    from heedful.files import replacing_file
    from heedful.tasks.parsing.trees.draw_svg import draw_pair, draw_tree

    drawings = _read(trees, traces) if predicted is None else _read_pairs(trees, predicted)
    if not drawings:
        raise TextError(
            f"{_name(trees)} must hold trees with words, but has none; give another file."
        )
    if line:
        drawings = _choose(drawings, line, predicted or trees)
    if different:
        drawings = [
            drawing for drawing in drawings if drawing.difference and drawing.difference.differs
        ]
        if not drawings:
            say("no phrase differs")
            return
    if output is None:
        _print(drawings)
        return
    if output.suffix.lower() != ".svg":
        with replacing_file(output) as stream:
            stream.writelines(f"{text}\n" for text in _lines(drawings, _WIDTH))
        return
    if len(drawings) > 1:
        refuse(
            "--line",
            f"must choose one tree of {_name(trees)}, because a picture holds one, but "
            f"{len(drawings):,} would be drawn; give the line of one tree.",
        )
    drawing = drawings[0]
    if drawing.difference is None:
        picture = draw_tree(drawing.tree)
    else:
        picture = draw_pair(drawing.tree, drawing.predicted, drawing.difference)
    with replacing_file(output) as stream:
        stream.write(picture)


def _print(drawings: list[_Drawing]) -> None:
    """Print trees at the terminal's width, in color only in a terminal with color enabled."""
    width = shutil.get_terminal_size((_WIDTH, 24)).columns
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    text = "\n".join(_lines(drawings, width, color=sys.stdout.isatty() and not plain))
    typer.echo(text)


def _lines(drawings: list[_Drawing], width: int, *, color: bool = False) -> Iterable[str]:
    """Draw trees below each other, with headings if there are several or they are compared."""
    from heedful.tasks.parsing.trees.draw_text import cut, draw_pair, draw_tree, escape_unprintable
    from heedful.tasks.parsing.trees.tree import unescape_brackets

    for place, (number, tree, predicted, difference) in enumerate(drawings):
        if place:
            yield ""
        if difference is not None or len(drawings) > 1:
            f1 = "" if difference is None else f", F1 {difference.f1:.1f}"
            words = " ".join(escape_unprintable(unescape_brackets(word)) for word in tree.words)
            yield cut(f"{number}{f1}: {words}", width)
        if difference is None:
            yield from draw_tree(tree, width)
        else:
            yield from draw_pair(tree, predicted, difference, width, color=color)


def _choose(drawings: list[_Drawing], numbers: list[int], file: Path) -> list[_Drawing]:
    """Choose the trees on the lines with the given numbers."""
    from heedful.errors import TextError

    by_line = {drawing.number: drawing for drawing in drawings}
    for number in numbers:
        if number not in by_line:
            raise TextError(
                f"--line must be a line of {_name(file)} with a tree, at most {max(by_line)}, but "
                f"is {number}; name another."
            )
    return [by_line[number] for number in numbers]


def _read(file: Path, traces: bool) -> list[_Drawing]:
    """Read trees, numbered by their lines."""
    from heedful.tasks.parsing.trees.clean import clean_tree, without_outer

    clean = without_outer if traces else clean_tree
    numbered = enumerate((tree and clean(tree) for tree in _trees(file)), 1)
    return [_Drawing(number, tree) for number, tree in numbered if tree is not None]


def _read_pairs(gold: Path, predicted: Path) -> list[_Drawing]:
    """Read gold and predicted trees, numbered by the lines of the predicted trees."""
    from heedful.tasks.parsing.trees.clean import clean_tree
    from heedful.tasks.parsing.trees.differences import differing_phrases
    from heedful.tasks.parsing.trees.evaluate import read_predicted

    golds = _trees(gold)
    cleaned = (tree and clean_tree(tree) for tree in golds)
    right = [tree for tree in cleaned if tree is not None]
    predictions = read_predicted(predicted, gold, golds)
    return [
        _Drawing(number, tree, prediction, differing_phrases(tree, prediction))
        for tree, (number, prediction) in zip(right, predictions, strict=True)
    ]


def _trees(file: Path) -> list["Tree | None"]:
    """Read the trees of a file or stdin; None for an empty line."""
    from heedful.tasks.parsing.trees.read import parse_lines_or_text
    from heedful.text.lines import decode_lines, plain_lines

    name = _name(file)
    lines = decode_lines(standard_input(), name) if file == STDIN else plain_lines(file)
    return list(parse_lines_or_text(list(lines), name))


def _name(file: Path) -> str:
    """Return the name of a file for messages."""
    return "the input" if file == STDIN else str(file)
