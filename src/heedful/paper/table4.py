"""
Table 4: the published parsers, and heedful's parsers on the user's trees.

Published rows are F1 scores on section 23 of the Wall Street Journal, which cannot be compared with
scores on other trees. Baselines and grammars can be compared with heedful's parsers, because all
are scored on the same sentences. Grammars need training trees; baselines learn from training trees
if any are given.
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
"""Minimum number of sentences for meaningful scores."""
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
    """A neural parser, a grammar or a baseline, with its score."""

    name: str
    score: TreeScore
    interval: tuple[float, float]
    """The 95% confidence interval of F1."""
    is_baseline: bool = False


@dataclass(frozen=True)
class Table4:
    """The published rows, and the scored parsers."""

    parsers: tuple[ScoredParser, ...]
    comparisons: tuple[ScoreDifference, ...]
    sentences: int
    """Number of sentences on which the parsers were scored."""

    @property
    def published_rows(self) -> Rows:
        """The paper's table."""
        rows: Rows = [("parser", "training", "F1")]
        return rows + [(row.name, row.training, f"{row.f1:.1f}") for row in PUBLISHED]

    @property
    def own_rows(self) -> Rows:
        """The table of the scored parsers; only its header if there are no parsers."""
        rows: Rows = [("parser", "F1", "95% interval", "exact match", "unparsed")]
        for parser in self.parsers:
            low, high = parser.interval
            score = parser.score
            scores = (f"{score.f1:.1f}", f"{low:.1f} to {high:.1f}", f"{score.exact_match:.1f}")
            rows.append((parser.name, *scores, str(score.unparsed)))
        return rows

    @property
    def conclusions(self) -> list[str]:
        """The conclusions that the table allows, and their limits."""
        notes = [comparison.sentence for comparison in self.comparisons]
        notes += learned_nothing(
            row.name for row in self.parsers if not row.is_baseline and row.score.f1 < LEARNED
        )
        if self.parsers:
            if self.sentences < _FEW:
                notes.append(
                    f"Fewer than {_FEW} sentences are too few for conclusions, whatever the "
                    "intervals."
                )
            sentences = f"{self.sentences:,} sentence" + "s" * (self.sentences != 1)
            notes.append(
                f"Our parsers were scored on {sentences}, and the published parsers on section 23 "
                "after training on about 40,000 trees or more; so do not compare the two tables."
            )
        return notes

    def to_markdown(self) -> str:
        """Lay the table out as a page."""
        parts = ["# Table 4", "Published, F1 on section 23:", markdown(self.published_rows)]
        if self.parsers:
            parts += ["Here:", markdown(self.own_rows), *self.conclusions]
        return "\n\n".join(parts) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {
            "published": [row._asdict() for row in PUBLISHED],
            "here": [
                {"name": parser.name, **parser.score.to_dict(), "interval": list(parser.interval)}
                for parser in self.parsers
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
    Score parsers, baselines, and two grammars learned from `train_trees`, on the same trees.

    Raises `ArgumentError` if runs or training trees are given without trees for scoring.
    """
    if trees is None:
        if runs or train_trees:
            raise ArgumentError(
                "`trees` must name gold trees to score the parsers on, but got none; give --trees."
            )
        return Table4((), (), 0)
    # parsers are loaded first, so that a run that cannot be opened fails before the work
    parsers = {run: Parser.load(run, threads=threads, device=device) for run in runs}
    gold_files = expand([trees])
    gold = read_clean(gold_files)
    files = expand(train_trees) if train_trees else []
    learned = [tree for file in files for tree in read_clean([file])]
    if any(file.path.samefile(scored.path) for file in files for scored in gold_files):
        say(f"warning: the grammars are scored on trees that they were trained on, {trees}")
    scored = [
        _score_parser(name, gold, parsed, True) for name, parsed in _baselines(gold, learned, say)
    ]
    lines, tags = [" ".join(tree.words) for tree in gold], [tree.tags for tree in gold]
    for run, parser in parsers.items():
        say(f"{run}: parsing {len(gold):,} sentences")
        parses = [parse.tree for parse in parser.parse(lines, options, tags)]
        scored.append(_score_parser(run.resolve().name, gold, parses))
    return Table4(tuple(scored), tuple(_comparisons(scored)), len(gold))


def _baselines(
    gold: Sequence[Tree], learned: Sequence[Tree], say: Callable[[str], object]
) -> list[tuple[str, list[Tree]]]:
    """Build two baselines and, if there are training trees, parse with two grammars."""
    # Flat and right-branching trees need only labels. Without training trees, the labels come from
    # the gold trees.
    floors = TreeFloors(learned or gold)
    drawn = {"flat": floors.flat, "right-branching": floors.right_branching}
    baselines = [(name, [draw(tree.words) for tree in gold]) for name, draw in drawn.items()]
    if learned:
        for title, parents in (("grammar (PCFG)", False), ("grammar with parents", True)):
            name = f"{title} of {len(learned):,} trees"
            say(f"{name}: parsing {len(gold):,} sentences")
            grammar = Pcfg(learned, parents=parents)
            baselines.append((name, [grammar.parse(tree.words).tree for tree in gold]))
    return baselines


def _score_parser(
    name: str, gold: Sequence[Tree], parses: Sequence[Tree], is_baseline: bool = False
) -> ScoredParser:
    """Score the trees of one parser."""
    score = score_trees(gold, parses)
    return ScoredParser(
        name, score, confidence_intervals([score.statistics()], Resampling())[0], is_baseline
    )


def _comparisons(parsers: Sequence[ScoredParser]) -> list[ScoreDifference]:
    """Compare each useful parser with the next-best one if at least one of the two is neural."""
    able = (parser for parser in parsers if parser.is_baseline or parser.score.f1 >= LEARNED)
    ranked = sorted(able, key=lambda parser: -parser.score.f1)
    pairs = []
    for better, worse in pairwise(ranked):
        if better.is_baseline and worse.is_baseline:
            continue
        ours, theirs = better.score.statistics(), worse.score.statistics()
        (test,) = compare([ours], [theirs], "bootstrap")
        pairs.append(ScoreDifference(better.name, worse.name, test.difference, test.interval, "F1"))
    return pairs
