"""
Check the sentences of messages, help, docstrings and pages.

    python tools/sentences.py draw SEED    draw a hundred sentences for a reader to judge
    python tools/sentences.py long         list sentences of over 25 words; a part of `make check`

A draw has equal numbers of sentences from messages, help texts, docstrings and pages. The same seed
draws the same sentences from the same texts. `--count` is the number of sentences.
Long sentences on pages of results are drawn but not listed, because those pages print records.
"""

import argparse
import ast
import random
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import typer.main

from heedful.cli.main import app
from heedful.config.schema import setting_fields

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "heedful"
FEWEST_WORDS = 5
MOST_WORDS = 25


class Sentence(NamedTuple):
    """A sentence, and the file and line or the command where it occurs."""

    place: str
    text: str


def main() -> int:
    """Draw sentences, or list the long ones and return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw")
    drawing.add_argument("seed", type=int)
    drawing.add_argument("--count", type=int, default=100)
    commands.add_parser("long")
    options = parser.parse_args()
    if options.command == "draw":
        for number, (kind, sentence) in enumerate(draw(options.seed, options.count), 1):
            print(f"{number:3} {kind}, {sentence.place}\n    {sentence.text}")
        return 0
    sentences = sorted({sentence for kind in by_kind().values() for sentence in kind})
    too_long = [
        sentence
        for sentence in sentences
        if not sentence.place.startswith("docs/results/") and words(sentence.text) > MOST_WORDS
    ]
    for place, text in too_long:
        print(f"{place}: {words(text)} words, at most {MOST_WORDS}: {text}")
    return int(bool(too_long))


def words(text: str) -> int:
    """
    Count the words of the longest clause between colons and semicolons.

    A value in braces and a code span count as one word each; lists in parentheses do not count.
    """
    if not re.search(r"[.,;:?!]", text):  # a list of codes or words
        return 0
    text = re.sub(r"`[^`]*`|\{[^{}]*\}|\$[^$]*\$", "X", text)
    text = re.sub(r"\([^()]*,[^()]*\)", "", text)
    clauses = re.split(r"[;:](?=\s)", text)
    return max(sum(any(map(str.isalnum, word)) for word in clause.split()) for clause in clauses)


def draw(seed: int, count: int) -> list[tuple[str, Sentence]]:
    """Draw equally many sentences of each kind."""
    kinds = by_kind()
    generator = random.Random(seed)
    return [
        (kind, sentence)
        for kind, sentences in kinds.items()
        for sentence in generator.sample(sorted(set(sentences)), count // len(kinds))
    ]


@cache
def by_kind() -> dict[str, list[Sentence]]:
    """Read all sentences, once."""
    return {
        "message": [*of_source(messages)],
        "help": [*helps()],
        "docstring": [*of_source(docstrings)],
        "page": [*pages()],
    }


def split(place: str, text: str) -> Iterator[Sentence]:
    """Split a text into sentences; leave out those with few words, such as lists of names."""
    for sentence in re.split(r"(?<=[.!?])\)?\s+(?=[A-Z“`{(<*-])", " ".join(text.split())):
        words = [word.strip(".,;:!?()“”") for word in sentence.split()]
        if sum(map(str.isalpha, words)) >= FEWEST_WORDS:
            yield Sentence(place, sentence)


def of_source(texts: Callable[[ast.Module], Iterator[tuple[int, str]]]) -> Iterator[Sentence]:
    """Split the texts that a function finds in each module."""
    for file in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for line, text in texts(tree):
            yield from split(f"{file.relative_to(ROOT)}:{line}", text)


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Find the paragraphs of docstrings, except drawings and tables."""
    for line, text in statements(tree):
        text = re.sub(r"\n\s*-{3,}\s*\n", "\n\n", text)
        text = re.sub(r"(?m)^ *\*{0,2}\w[\w, *]* : .*$", "\n", text)  # a parameter and its type
        for paragraph in re.split(r"\n\s*\n", text):
            if not re.search(r"\S {2,}\S|[─→│]|>>>", paragraph):
                yield line, paragraph


def statements(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Find the strings that are statements: docstrings, and descriptions of fields."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text


def messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Find the strings that code uses, with the values of an f-string in braces."""
    alone = dict(statements(tree))
    within: set[int] = set()
    for node in ast.walk(tree):  # an f-string comes before its parts
        if isinstance(node, ast.JoinedStr):
            within.update(map(id, ast.walk(node)))
            yield node.lineno, ast.unparse(node)[2:-1]
        elif isinstance(node, ast.Constant) and id(node) not in within:
            text = node.value
            if isinstance(text, str) and text != alone.get(node.lineno) and "\n" not in text:
                yield node.lineno, text


def helps() -> Iterator[Sentence]:
    """Read the help of commands, options and settings."""
    for name, field in setting_fields().items():
        yield from split(name, field.description or "")
    commands = [("heedful", typer.main.get_command(app))]
    while commands:
        name, command = commands.pop()
        commands += [
            (f"{name} {key}", value) for key, value in getattr(command, "commands", {}).items()
        ]
        prose = re.sub(r"\x08|(?m:^ *heedful .*(?<!\w\.)$)", "", command.help or "")  # no examples
        yield from split(name, prose)
        for parameter in command.params:
            yield from split(f"{name} {parameter.opts[0]}", getattr(parameter, "help", "") or "")


def pages() -> Iterator[Sentence]:
    """Read the paragraphs and lists of pages, except titles, tables and code."""
    for file in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]:
        if "generated" in file.parts:
            continue
        text = re.sub(r"(?ms)^(```|:::).*?^\1$", "", file.read_text(encoding="utf-8"))
        text = re.sub(r"<!--.*?-->", "", text)
        for line in text.splitlines():
            if not line.startswith(("|", "#")):
                plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", line).lstrip("-> ")
                yield from split(str(file.relative_to(ROOT)), plain)


if __name__ == "__main__":
    sys.exit(main())
