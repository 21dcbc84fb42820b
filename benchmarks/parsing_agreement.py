"""Trees on which two parsers agree, for sentences that have no gold trees."""

import lzma
from pathlib import Path

from nltk.tokenize import TreebankWordTokenizer

from heedful.search.settings import SearchOptions
from heedful.tasks.parsing.parser import Parser
from heedful.tasks.parsing.trees.clean import clean_trees
from heedful.tasks.parsing.trees.read import read_trees
from heedful.tasks.parsing.trees.score import score_trees
from heedful.tasks.parsing.trees.tree import Tree

LONGEST = 40
"""Maximum number of words in a sentence that is parsed."""


def read_sentences(data: Path) -> list[str]:
    """Read the English sides of WMT's news tests, tokenized as in the Penn Treebank."""
    cut = TreebankWordTokenizer()
    sentences: dict[str, None] = {}  # without duplicates, in order
    for archive in sorted((data / "wmt-newstest" / "en-de").glob("*.en.xz")):
        for line in lzma.decompress(archive.read_bytes()).decode().splitlines():
            words = cut.tokenize(line)
            if 2 <= len(words) <= LONGEST:
                sentences[" ".join(words)] = None
    return [*sentences]


def agreed_trees(runs: list[Path], data: Path, least: float) -> list[Tree]:
    """Return trees of the first run with an F1 of at least `least` with the second run's trees."""
    first, second = (_parse_all(run, data) for run in runs)
    agreed = []
    for tree, rival in zip(first, second, strict=True):
        score = score_trees([tree], [rival])
        if score.exact_match == 100 or score.f1 >= least:
            agreed.append(tree)
    print(f"{len(agreed)} of {len(first)} sentences have trees of F1 {least:g} or more")
    return agreed


def _parse_all(run: Path, data: Path) -> list[Tree]:
    """Parse all sentences with a run, or read the trees that an earlier call saved next to it."""
    file = run.with_name(f"{run.name}.news.trees")
    if not file.exists():
        parser = Parser.load(run, threads=1, precision="fp32", device="cpu")
        parses = parser.parse(read_sentences(data), SearchOptions(beam=1))
        file.write_text("".join(f"{parse.tree}\n" for parse in parses), encoding="utf-8")
    return clean_trees(read_trees(file))
