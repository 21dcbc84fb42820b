"""
Table 4: the published parsers, and our own on the user's trees.

Published rows are F1 on section 23 of the Wall Street Journal, and do not compare with scores on
other trees. Floors and grammars compare with our own parsers: all are scored on the same sentences,
and learned from the same trees if given.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from heedful.errors import ArgumentError
from heedful.evaluation.significance import Resampling, compare, confidence_intervals
from heedful.experiments.page import LEARNED, Rows, ScoreDifference, learned_nothing, markdown
from heedful.paper.parsing.floors import TreeFloors
from heedful.paper.parsing.pcfg import Pcfg
from heedful.search.settings import SearchOptions
from heedful.tasks.parsing.parser import Parser
from heedful.tasks.parsing.text import read_clean
from heedful.tasks.parsing.trees.score import TreeScore, score_trees
from heedful.tasks.parsing.trees.tree import Tree
from heedful.text.corpus import expand

_FEW = 30
"""Fewer sentences show nothing."""
_WSJ, _SEMI = "WSJ only, discriminative", "semi-supervised"


class PublishedParser(NamedTuple):
    """A row of the paper's Table 4."""

    name: str
    training: str
    f1: float


PUBLISHED = (
    PublishedParser("Vinyals & Kaiser et al. (2014)", _WSJ, 88.3),
    PublishedParser("Petrov et al. (2006)", _WSJ, 90.4),
    PublishedParser("Zhu et al. (2013)", _WSJ, 90.4),
    PublishedParser("Dyer et al. (2016)", _WSJ, 91.7),
    PublishedParser("Transformer (4 layers)", _WSJ, 91.3),
    PublishedParser("Zhu et al. (2013)", _SEMI, 91.3),
    PublishedParser("Huang & Harper (2009)", _SEMI, 91.3),
    PublishedParser("McClosky et al. (2006)", _SEMI, 92.1),
    PublishedParser("Vinyals & Kaiser et al. (2014)", _SEMI, 92.1),
    PublishedParser("Transformer (4 layers)", _SEMI, 92.7),
    PublishedParser("Luong et al. (2015)", "multi-task", 93.0),
    PublishedParser("Dyer et al. (2016)", "generative", 93.3),
)


@dataclass(frozen=True)
class ScoredParser:
    """A parser of ours, or a floor."""

    name: str
    score: TreeScore
    interval: tuple[float, float]
    """Of F1, 95 %."""
    is_floor: bool = False


@dataclass(frozen=True)
class Table4:
    """The published rows, and ours."""

    parsers: tuple[ScoredParser, ...]
    comparisons: tuple[ScoreDifference, ...]
    sentences: int
    """Number of sentences that ours were scored on."""

    @property
    def published_rows(self) -> Rows:
        """The paper's table."""
        rows: Rows = [("parser", "training", "F1")]
        return rows + [(one.name, one.training, f"{one.f1:.1f}") for one in PUBLISHED]

    @property
    def own_rows(self) -> Rows:
        """Our table; only its head if there are no parsers."""
        rows: Rows = [("parser", "F1", "95 % interval", "exact match", "unparsed")]
        for one in self.parsers:
            low, high = one.interval
            score = one.score
            scores = (f"{score.f1:.1f}", f"{low:.1f} to {high:.1f}", f"{score.exact_match:.1f}")
            rows.append((one.name, *scores, str(score.unparsed)))
        return rows

    @property
    def conclusions(self) -> list[str]:
        """What may be concluded, and what not."""
        found = [comparison.sentence for comparison in self.comparisons]
        found += learned_nothing(
            one.name for one in self.parsers if not one.is_floor and one.score.f1 < LEARNED
        )
        if self.parsers:
            if self.sentences < _FEW:
                found.append(
                    f"Fewer than {_FEW} sentences are too few to show anything, whatever the "
                    "intervals."
                )
            sentences = f"{self.sentences:,} sentence" + "s" * (self.sentences != 1)
            found.append(
                f"Ours were scored on {sentences}, the published ones on section 23 after training "
                "on about 40,000 trees; so the two tables must not be compared."
            )
        return found

    def to_markdown(self) -> str:
        """Lay it out as a page."""
        parts = ["# Table 4", "Published, F1 on section 23:", markdown(self.published_rows)]
        if self.parsers:
            parts += ["Here:", markdown(self.own_rows), *self.conclusions]
        return "\n\n".join(parts) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values."""
        return {
            "published": [one._asdict() for one in PUBLISHED],
            "here": [
                {"name": one.name, **one.score.to_dict(), "interval": list(one.interval)}
                for one in self.parsers
            ],
            "conclusions": self.conclusions,
        }


def make_table4(
    runs: Sequence[Path],
    trees: Path | None,
    train_trees: Sequence[Path] = (),
    *,
    options: SearchOptions | None = None,
    threads: int = 0,
    device: str = "auto",
    say: Callable[[str], object] = lambda _: None,
) -> Table4:
    """
    Score parsers, floors, and two grammars learned from `train_trees`, on the same trees.

    Raises `ArgumentError` for runs or training trees without trees to score them on.
    """
    if trees is None:
        if runs or train_trees:
            raise ArgumentError(
                "`trees` must name gold trees to score the parsers on, but got none; give --trees."
            )
        return Table4((), (), 0)
    # what cannot be opened is said before the work
    parsers = {run: Parser.load(run, threads=threads, device=device) for run in runs}
    gold = read_clean(expand([trees]))
    files = expand(train_trees) if train_trees else []
    learned = [tree for file in files for tree in read_clean([file])]
    if any(file.path.samefile(trees) for file in files):
        say(f"warning: the grammars have seen the trees that it is scored on, {trees}")
    found = [_scored(name, gold, parsed, True) for name, parsed in _baselines(gold, learned, say)]
    lines, tags = [" ".join(tree.words) for tree in gold], [tree.tags for tree in gold]
    for run, parser in parsers.items():
        say(f"{run}: parsing {len(gold):,} sentences")
        parses = [parse.tree for parse in parser.parse(lines, options, tags)]
        found.append(_scored(run.resolve().name, gold, parses))
    return Table4(tuple(found), tuple(_comparisons(found)), len(gold))


def _baselines(
    gold: Sequence[Tree], learned: Sequence[Tree], say: Callable[[str], object]
) -> list[tuple[str, list[Tree]]]:
    """Parse without a model."""
    # Flat and right-branching trees need labels alone; without training trees they are the gold
    # trees' own.
    floors = TreeFloors(learned or gold)
    drawn = {"flat": floors.flat, "right-branching": floors.right_branching}
    found = [(name, [draw(tree.words) for tree in gold]) for name, draw in drawn.items()]
    if learned:
        for title, parents in (("grammar (PCFG)", False), ("grammar with parents", True)):
            name = f"{title} of {len(learned):,} trees"
            say(f"{name}: parsing {len(gold):,} sentences")
            grammar = Pcfg(learned, parents=parents)
            found.append((name, [grammar.parse(tree.words).tree for tree in gold]))
    return found


def _scored(
    name: str, gold: Sequence[Tree], parses: Sequence[Tree], is_floor: bool = False
) -> ScoredParser:
    """Score trees."""
    score = score_trees(gold, parses)
    return ScoredParser(
        name, score, confidence_intervals([score.statistics()], Resampling())[0], is_floor
    )


def _comparisons(parsers: Sequence[ScoredParser]) -> list[ScoreDifference]:
    """Compare parsers that have learned something, each with the next worse parser."""
    able = (one for one in parsers if one.is_floor or one.score.f1 >= LEARNED)
    ranked = sorted(able, key=lambda one: -one.score.f1)
    found = []
    for better, worse in pairwise(ranked):
        if better.is_floor and worse.is_floor:
            continue
        ours, theirs = better.score.statistics(), worse.score.statistics()
        (test,) = compare([ours], [theirs], "bootstrap")
        found.append(ScoreDifference(better.name, worse.name, test.difference, test.interval, "F1"))
    return found
