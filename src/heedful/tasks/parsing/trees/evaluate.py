"""Evaluation of files of trees: scores, intervals, and EVALB's own score."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
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
from heedful.tasks.parsing.trees.brackets import BracketedSentence
from heedful.tasks.parsing.trees.clean import TreeCleaning, clean_tree, clean_trees
from heedful.tasks.parsing.trees.evalb import ERROR, SKIP, EvalbResult, evalb, read_line
from heedful.tasks.parsing.trees.evalb_parameters import COLLINS, EvalbParameters, read_parameters
from heedful.tasks.parsing.trees.read import parse_lines_or_text, read_tree_lines
from heedful.tasks.parsing.trees.score import TreeScore, same_words, score_trees
from heedful.tasks.parsing.trees.tree import Tree
from heedful.text.lines import plain_lines

_RESAMPLING = Resampling()


@dataclass(frozen=True)
class TreeEvaluation:
    """Scores of predicted trees."""

    score: TreeScore
    cutoff: int
    """Maximum length of the sentences in the second summary, in words."""
    evalb: EvalbResult
    interval: tuple[float, float] | None = None
    """The 95% confidence interval of F1, if requested."""
    against: tuple[tuple[str, SignificanceTest], ...] = ()
    """For each other system: the name of its file, and the test of the difference in F1."""
    warnings: tuple[str, ...] = ()
    test: Test = "randomization"
    """The significance test that yields the p-values."""
    resampling: Resampling = _RESAMPLING
    """Number and seed of the random draws for intervals and p-values."""

    def to_dict(self) -> dict[str, Any]:
        """Convert the evaluation to a dictionary."""
        own = self.evalb.all
        plain: dict[str, Any] = {
            "all": self.score.to_dict(),
            f"up_to_{self.cutoff}": self.score.up_to(self.cutoff).to_dict(),
            "interval": self.interval and list(self.interval),
            "evalb": {
                "f1": own.f1,
                "precision": own.precision,
                "recall": own.recall,
                "errors": own.number(ERROR),
                "skips": own.number(SKIP),
                "stops_at": self.evalb.stop,
                "tags_from_gold": self.evalb.tags_from_gold,
            },
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
        if self.against or self.interval:
            plain["resampling"] = {"test": self.test} if self.against else {}
            plain["resampling"] |= asdict(self.resampling)
        return plain


def evaluate_trees(
    gold: Path,
    predicted: Path,
    *,
    against: Sequence[Path] = (),
    parameters: Path | None = None,
    confidence: bool = False,
    test: Test = "randomization",
    resampling: Resampling = _RESAMPLING,
) -> TreeEvaluation:
    """
    Score files of trees.

    Gold trees without a word are left out, with the corresponding lines of predicted trees.

    Raises `TextError` if a file cannot be read, if the numbers of trees differ, or if no tree has
    the words of its gold tree.
    """
    rules = COLLINS if parameters is None else read_parameters(parameters)
    golds = parse_lines_or_text(list(plain_lines(gold)), str(gold))
    report = TreeCleaning()
    right = clean_trees((tree for tree in golds if tree is not None), report)
    if not right:
        raise TextError(f"{gold} must hold trees with words, but has none; give another file.")
    warnings: list[str] = []
    if report.empty:
        warnings.append(f"{gold}: {report.left_out()}.")

    def read(file: Path) -> list[Tree | None]:
        numbered = read_predicted(file, gold, golds)
        warnings.extend(_differing(file, right, numbered, rules))
        return [tree for _, tree in numbered]

    predictions = read(predicted)
    score = score_trees(right, predictions, rules)
    statistics = score.statistics()
    tests = []
    for file in against:
        rival = score_trees(right, read(file), rules).statistics()
        tests += [
            (str(file), result) for result in compare([statistics], [rival], test, resampling)
        ]
    lines = ["" if tree is None else str(tree) for tree in predictions]
    return TreeEvaluation(
        score,
        rules.cutoff,
        evalb([str(tree) for tree in right], lines, rules),
        confidence_intervals([statistics], resampling)[0] if confidence else None,
        tuple(tests),
        tuple(warnings),
        test,
        resampling,
    )


def evalb_files(
    gold: Path, predicted: Path, parameters: Path | None = None
) -> tuple[EvalbResult, tuple[str, ...]]:
    """
    Score files of trees as EVALB does: line by line, without cleaning trees.

    If the numbers of lines differ, for example because gold trees span several lines, EVALB cannot
    read the files. Then the cleaned trees are scored. Returns the result and the warnings.

    Raises `TextError` if a file cannot be read, or if the numbers of trees also differ.
    """
    lines, predicted_lines = list(plain_lines(gold)), list(plain_lines(predicted))
    if len(lines) != len(predicted_lines):
        evaluation = evaluate_trees(gold, predicted, parameters=parameters)
        result, warnings = evaluation.evalb, list(evaluation.warnings)
    else:
        rules = COLLINS if parameters is None else read_parameters(parameters)
        result, warnings = evalb(lines, predicted_lines, rules), []
        without_label = [sum(map(_has_bare_bracket, side)) for side in (lines, predicted_lines)]
        if any(without_label):
            warnings.append(
                f"EVALB counts brackets without a label; {without_label[0]:,} gold and "
                f"{without_label[1]:,} predicted lines have such brackets. Write (TOP …) around "
                "trees, or score without --evalb."
            )
    errors = [
        (n, sentence) for n, sentence in enumerate(result.sentences, 1) if sentence.status == ERROR
    ]
    if errors:
        number, first = errors[0]
        warnings.append(
            f"{len(errors):,} of {len(result.sentences):,} sentences are error sentences; the "
            f"first is sentence {number}: {first.reason}."
        )
    if result.stop:
        warnings.append(f"{_stop(result)}. The table has all sentences.")
    if result.tags_from_gold:
        warnings.append("All predicted tags are XX; they were replaced by the gold trees' tags.")
    return result, tuple(warnings)


def as_text(evaluation: TreeEvaluation) -> str:
    """Format an evaluation for a terminal."""
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
        values = [getattr(summary, key) for summary in (score, short)]
        shown = ["–" if value is None else f"{value:.2f}" for value in values]
        rows.append(f"{label:<14}{shown[0]:>10}{shown[1]:>12}")
    rows.append(f"{'sentences':<14}{len(score.sentences):>10,}{len(short.sentences):>12,}")
    rows.append(f"{'unparsed':<14}{score.unparsed:>10,}{short.unparsed:>12,}")
    if evaluation.interval is not None:
        low, high = evaluation.interval
        rows.append(f"F1 of all sentences is between {low:.2f} and {high:.2f} (95% interval)")
    for file, test in evaluation.against:
        low, high = test.interval
        rows.append(
            f"{file}: F1 {test.score:.2f}, difference {test.difference:+.2f} "
            f"({low:+.2f} to {high:+.2f}), p = {test.p_value:.4f}"
        )
    if evaluation.interval is not None or evaluation.against:
        rows += evaluation.resampling.describe(evaluation.test if evaluation.against else None)
    return "\n".join([*rows, _own_figure(evaluation.evalb)])


def _own_figure(result: EvalbResult) -> str:
    """State EVALB's own score."""
    own = result.all
    f1 = "none" if own.f1 is None else f"{own.f1:.2f}"
    errors, skips = own.number(ERROR), own.number(SKIP)
    note = "; it leaves these sentences out" if errors + skips else ""
    tags_note = ", with gold tags" if result.tags_from_gold else ""
    stop = f". {_stop(result)}" if result.stop else ""
    return (
        f"EVALB itself{tags_note}: F1 {f1}, {errors:,} error and {skips:,} skip sentences"
        f"{note}{stop}"
    )


def _stop(result: EvalbResult) -> str:
    """Describe where EVALB stops."""
    return (
        f"EVALB's program stops without a summary at sentence {result.stop:,}, where the number of "
        f"error sentences exceeds MAX_ERROR ({result.parameters.max_error:,}) by 2"
    )


def _has_bare_bracket(line: str) -> bool:
    """Return whether a line has a bracket without a label, which EVALB counts."""
    read = read_line(line)
    return isinstance(read, BracketedSentence) and any(not phrase.label for phrase in read.phrases)


def read_predicted(
    file: Path, gold_file: Path, gold: Sequence[Tree | None]
) -> list[tuple[int, Tree | None]]:
    """
    Read the predicted tree of each gold tree that has words, with its line number.

    `gold`: the gold trees before cleaning; None for an empty line.
    """
    predictions = list(enumerate((tree and clean_tree(tree) for tree in read_tree_lines(file)), 1))
    trees = [tree for tree in gold if tree is not None]
    with_words = [tree for tree in trees if clean_tree(tree) is not None]
    # The file may or may not have lines for empty gold lines and for gold trees without words.
    for candidates in (gold, trees, with_words):
        if len(predictions) == len(candidates):
            lines = zip(predictions, candidates, strict=True)
            return [line for line, tree in lines if tree is not None and clean_tree(tree)]
    raise TextError(
        f"{file} must have a line for each of the {len(trees):,} trees of {gold_file}, but has "
        f"{len(predictions):,}; write an empty line for a missing tree."
    )


def _differing(
    file: Path,
    gold: Sequence[Tree],
    predictions: Sequence[tuple[int, Tree | None]],
    parameters: EvalbParameters,
) -> Iterator[str]:
    """Warn about trees whose words differ from the gold words; refuse a file of only such trees."""
    trees = [(n, tree, right) for (n, tree), right in zip(predictions, gold, strict=True) if tree]
    mismatches = [
        f"line {number} of {file} is “{_begin(tree)}” instead of “{_begin(right)}”"
        for number, tree, right in trees
        if not same_words(right, tree, parameters)
    ]
    if mismatches and len(mismatches) == len(trees):
        raise TextError(
            "Predicted trees must have the words of the gold trees, but none has: "
            f"{mismatches[0]}; give files of the same sentences."
        )
    if mismatches:
        yield (
            "predicted trees whose words differ from those of the gold trees count as unparsed "
            f"({len(mismatches):,} of {len(gold):,}); {mismatches[0]}."
        )


def _begin(tree: Tree) -> str:
    """Return the first words of a tree."""
    return " ".join(tree.words)[:40]
