"""
Baselines of parsing: grammars read off a treebank, and trees of a fixed shape.

    python -m benchmarks.pcfg

Reads grammars off the first trees and off all trees of the treebanks in HEEDFUL_DATA. Parses their
development parts from words alone, in one process that takes about 40 minutes. F1 is that of
`heedful parse evaluate`. Writes `docs/results/pcfg.json`; `benchmarks.parsing` lays it out.
"""

import math
import tarfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.report import RESULTS, arguments, command, data_folder, machine
from heedful.experiments.record import Record
from heedful.paper.parsing.floors import TreeFloors
from heedful.paper.parsing.pcfg import Pcfg, PcfgParse
from heedful.tasks.parsing.trees.clean import clean_trees
from heedful.tasks.parsing.trees.read import parse_trees
from heedful.tasks.parsing.trees.score import score_trees
from heedful.tasks.parsing.trees.tree import Tree

WSJ = Path("ptb-wsj-sample", "wsj_0001-0179.mrg.tar.xz")
FIRST_DEV = "wsj_0160"
CRAFT = Path("craft-treebank")
SIZES = {"wsj": (500, 1_000, 2_000), "craft": (2_000,)}


class Treebank(NamedTuple):
    """The training trees and the development trees of a treebank."""

    train: list[Tree]
    dev: list[Tree]


def main() -> None:
    """Measure both treebanks."""
    options = arguments(__doc__).parse_args()
    scores = {name: measure(read(data_folder()), SIZES[name]) for name, read in TREEBANKS.items()}
    Record(options.commit, machine(), scores, [command()]).write(RESULTS / "pcfg.json")


def wsj(data: Path) -> Treebank:
    """Read the sample of the Wall Street Journal; files 160 to 179 are its development part."""
    files = read_treebank(data / WSJ)
    parts: tuple[list[Tree], list[Tree]] = ([], [])
    for name, trees in files.items():
        parts[name >= FIRST_DEV].extend(trees)
    return Treebank(*parts)


def craft(data: Path) -> Treebank:
    """Read the CRAFT treebank in its official parts."""
    files = (read_treebank(data / CRAFT / f"{part}.tree.tar.xz") for part in ("train", "dev"))
    return Treebank(*([tree for trees in part.values() for tree in trees] for part in files))


TREEBANKS: dict[str, Callable[[Path], Treebank]] = {"wsj": wsj, "craft": craft}


def read_treebank(archive: Path) -> dict[str, list[Tree]]:
    """Read the files of an archive by name; trees lose their traces and function tags."""
    files = {}
    with tarfile.open(archive) as members:
        for member in sorted(members.getmembers(), key=lambda member: member.name):
            if (file := members.extractfile(member)) is not None:
                lines = file.read().decode().splitlines()
                files[Path(member.name).name] = clean_trees(parse_trees(lines, member.name))
    return files


def measure(treebank: Treebank, sizes: Sequence[int]) -> dict[str, Any]:
    """Score the floors, and grammars of the first trees and of all trees."""
    train, dev = treebank
    floors = TreeFloors(train)
    drawn = {"flat": floors.flat, "right-branching": floors.right_branching}
    rows = [measure_grammar(train[:size], dev) for size in sizes if size < len(train)]
    rows.append(measure_grammar(train, dev))
    rows.append(measure_grammar(train, dev, parents=True))
    return {
        "train": len(train),
        "dev": len(dev),
        "dev_words": sum(len(tree.words) for tree in dev),
        "floors": {
            name: score_trees(dev, [draw(tree.words) for tree in dev]).to_dict()
            for name, draw in drawn.items()
        },
        "grammar": rows,
        "grammar_with_gold_tags": measure_grammar(train, dev, gold_tags=True),
    }


def measure_grammar(
    train: Sequence[Tree], dev: Sequence[Tree], gold_tags: bool = False, parents: bool = False
) -> dict[str, Any]:
    """Train a grammar and score its trees; `unparsed` sentences get a flat tree."""
    start = time.perf_counter()
    grammar = Pcfg(train, parents=parents)
    trained = time.perf_counter()
    parses: list[PcfgParse] = [
        grammar.parse(tree.words, tree.tags if gold_tags else None) for tree in dev
    ]
    parsed = time.perf_counter()
    score = score_trees(dev, [parse.tree for parse in parses])
    return {
        "trees": len(train),
        "parents": parents,
        "rules": len(grammar.rules.rules),
        **score.to_dict(),
        "up_to_40": score.up_to(40).f1,
        "unparsed": sum(parse.log_probability == -math.inf for parse in parses),
        "training_seconds": round(trained - start, 2),
        "parsing_seconds": round(parsed - trained, 1),
    }


if __name__ == "__main__":
    main()
