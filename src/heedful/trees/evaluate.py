"""Evaluation of files of trees: scores, intervals, and EVALB's own figure beside them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import TextError
from heedful.evaluation.significance import (
    Resampling,
    SignificanceTest,
    Test,
    compare,
    confidence_intervals,
)
from heedful.trees.clean import clean_tree, clean_trees
from heedful.trees.evalb import ERROR, SKIP, EvalbResult, evalb
from heedful.trees.evalb_parameters import COLLINS, read_parameters
from heedful.trees.read import read_tree_lines, read_trees
from heedful.trees.score import TreeScore, same_words, score_trees
from heedful.trees.tree import Tree


@dataclass(frozen=True)
class TreeEvaluation:
    """Scores of predicted trees."""

    score: TreeScore
    cutoff: int
    """Most words of the sentences of the second summary."""
    evalb: EvalbResult
    interval: tuple[float, float] | None = None
    """The 95 % confidence interval of F1, if requested."""
    against: tuple[tuple[str, SignificanceTest], ...] = ()
    """By file, how F1 differs from another system's."""
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values."""
        own = self.evalb.all
        return {
            "all": self.score.to_dict(),
            f"up_to_{self.cutoff}": self.score.up_to(self.cutoff).to_dict(),
            "interval": self.interval,
            "evalb": {"f1": own.f1, "errors": own.number(ERROR), "skips": own.number(SKIP)},
            "against": [
                {
                    "file": file,
                    "f1": test.score,
                    "difference": test.difference,
                    "interval": list(test.interval),
                    "p_value": test.p_value,
                }
                for file, test in self.against
            ],
        }


def evaluate_trees(
    gold: Path,
    predicted: Path,
    *,
    against: Sequence[Path] = (),
    parameters: Path | None = None,
    confidence: bool = False,
    test: Test = "randomisation",
    resampling: Resampling | None = None,
) -> TreeEvaluation:
    """
    Score files of trees.

    Raises `TextError` if a file cannot be read, has another number of trees, or if no tree has the
    words of its gold tree.
    """
    resampling = resampling or Resampling()
    rules = COLLINS if parameters is None else read_parameters(parameters)
    right = clean_trees(read_trees(gold))
    if not right:
        raise TextError(f"{gold} must hold trees with words, but has none; give another file.")
    warnings: list[str] = []
    found = _read_predicted(predicted, gold, right, warnings)
    score = score_trees(right, found, rules)
    statistics = score.statistics()
    tests = []
    for file in against:
        other = score_trees(right, _read_predicted(file, gold, right, warnings), rules)
        tests += [
            (str(file), one)
            for one in compare([statistics], [other.statistics()], test, resampling)
        ]
    lines = ["" if tree is None else str(tree) for tree in found]
    return TreeEvaluation(
        score,
        rules.cutoff,
        evalb([str(tree) for tree in right], lines, rules),
        confidence_intervals([statistics], resampling)[0] if confidence else None,
        tuple(tests),
        tuple(warnings),
    )


def as_text(evaluation: TreeEvaluation) -> str:
    """Lay an evaluation out for a terminal."""
    score, short = evaluation.score, evaluation.score.up_to(evaluation.cutoff)
    rows = [f"{'':<14}{'all':>10}{f'up to {evaluation.cutoff}':>12}"]
    for label, key in (
        ("F1", "f1"),
        ("precision", "precision"),
        ("recall", "recall"),
        ("exact match", "exact_match"),
        ("crossing", "crossing"),
        ("tagging", "tagging"),
    ):
        values = [getattr(each, key) for each in (score, short)]
        shown = ["–" if value is None else f"{value:.2f}" for value in values]
        rows.append(f"{label:<14}{shown[0]:>10}{shown[1]:>12}")
    rows.append(f"{'sentences':<14}{len(score.sentences):>10,}{len(short.sentences):>12,}")
    rows.append(f"{'unparsed':<14}{score.unparsed:>10,}{short.unparsed:>12,}")
    if evaluation.interval is not None:
        low, high = evaluation.interval
        rows.append(f"F1 is within {low:.2f} and {high:.2f} (95 % interval of all)")
    for file, test in evaluation.against:
        low, high = test.interval
        rows.append(
            f"{file}: F1 {test.score:.2f}, {test.difference:+.2f} to it "
            f"({low:+.2f} to {high:+.2f}), p = {test.p_value:.4f}"
        )
    own = evaluation.evalb.all
    f1 = "none" if own.f1 is None else f"{own.f1:.2f}"
    left_out = own.number(ERROR) + own.number(SKIP)
    note = "; it leaves out what is unparsed" if left_out else ""
    given = ", with gold tags" if evaluation.evalb.tags_from_gold else ""
    rows.append(
        f"EVALB itself{given}: F1 {f1}, {own.number(ERROR)} error and {own.number(SKIP)} skip "
        f"sentences{note}"
    )
    return "\n".join(rows)


def _read_predicted(
    file: Path, gold_file: Path, gold: Sequence[Tree], warnings: list[str]
) -> list[Tree | None]:
    """Read predicted trees, one a line; warn of those with other words than the gold tree."""
    found = [tree and clean_tree(tree) for tree in read_tree_lines(file)]
    if len(found) != len(gold):
        raise TextError(
            f"{file} must have a line for each of the {len(gold):,} trees of {gold_file}, but has "
            f"{len(found):,}; an empty line stands for a sentence without a tree."
        )
    other = [
        number
        for number, (tree, right) in enumerate(zip(found, gold, strict=True), start=1)
        if tree is not None and not same_words(right, tree)
    ]
    if other:
        first = other[0] - 1
        tree = found[first]
        shown = " ".join(tree.words)[:40] if tree is not None else ""
        what = f"line {other[0]} of {file} is “{shown}” instead of “{_begin(gold[first])}”"
        if len(other) == sum(tree is not None for tree in found):
            raise TextError(
                f"Predicted trees must have the words of the gold trees, but none has: {what}; "
                "give the files of one text."
            )
        warnings.append(
            f"{len(other):,} of {len(gold):,} predicted trees have other words than the gold trees "
            f"and count as unparsed; {what}."
        )
    return found


def _begin(tree: Tree) -> str:
    """Return the first words of a tree."""
    return " ".join(tree.words)[:40]
