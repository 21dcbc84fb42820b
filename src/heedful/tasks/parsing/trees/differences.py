"""
The phrases that only the gold tree or only the predicted tree has, counted as in the score.

EVALB's rules apply, so each marked phrase lowers F1: punctuation does not count, and ADVP equals
PRT. In a tree with different words, no phrase is correct.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from heedful.tasks.parsing.trees.brackets import Bracket, BracketedSentence, count_matches
from heedful.tasks.parsing.trees.evalb_parameters import COLLINS, EvalbParameters
from heedful.tasks.parsing.trees.score import SentenceScore, score_sentence
from heedful.tasks.parsing.trees.tree import Tree


@dataclass(frozen=True)
class TreeDifference:
    """The differing phrases of two trees, by their indices in `Tree.phrases`."""

    missed: frozenset[int]
    """Phrases of the gold tree that the predicted tree lacks."""
    wrong: frozenset[int]
    """Phrases of the predicted tree that the gold tree lacks."""
    score: SentenceScore
    has_tree: bool = True
    """Whether there is a predicted tree, even one with other words."""

    @property
    def differs(self) -> bool:
        """Whether the trees differ in phrases or words that count."""
        return bool(self.missed or self.wrong) or not self.score.is_parsed

    @property
    def f1(self) -> float:
        """F1 of this sentence."""
        return 200 * self.score.matched / max(self.score.predicted + self.score.gold, 1)

    def headings(self, missed: str = "", wrong: str = "") -> tuple[str, str]:
        """Write a heading for each tree. `missed`, `wrong`: the marks of differing phrases."""
        gold = _heading("gold", len(self.missed), self.score.gold, "missed", "found", missed)
        if not self.has_tree:
            return gold, "predicted: no tree"
        if not self.score.is_parsed:
            return gold, f"predicted: different words, so all phrases are wrong{wrong}"
        total = self.score.predicted
        return gold, _heading("predicted", len(self.wrong), total, "wrong", "right", wrong)


def _heading(name: str, differing: int, total: int, fault: str, merit: str, mark: str) -> str:
    """Write a heading that states how many phrases of a tree differ."""
    if not total:
        return f"{name}: no phrase that counts"
    if not differing:
        return f"{name}: all {total} phrases {merit}"
    return f"{name}: {differing} of {total} phrases {fault}{mark}"


def differing_phrases(
    gold: Tree, predicted: Tree | None, parameters: EvalbParameters = COLLINS
) -> TreeDifference:
    """Compare two trees; None stands for a missing tree."""
    score = score_sentence(gold, predicted, parameters)
    sentence = BracketedSentence.of(gold)
    counts = sentence.counted_words(parameters)
    missed = dict(_counted_phrases(sentence, counts, parameters))
    if predicted is None:
        return TreeDifference(frozenset(missed), frozenset(), score, has_tree=False)
    predicted_sentence = BracketedSentence.of(predicted)
    if not score.is_parsed:  # the words of the predicted tree count
        counts = predicted_sentence.counted_words(parameters)
    wrong = dict(_counted_phrases(predicted_sentence, counts, parameters))
    for place, bracket in list(missed.items()) if score.is_parsed else ():
        matches = (
            n for n, candidate in wrong.items() if count_matches([bracket], [candidate], parameters)
        )
        if (match := next(matches, None)) is not None:
            del missed[place], wrong[match]
    return TreeDifference(frozenset(missed), frozenset(wrong), score)


def _counted_phrases(
    sentence: BracketedSentence, counts: list[int], parameters: EvalbParameters
) -> Iterator[tuple[int, Bracket]]:
    """List the phrases that count, with their indices."""
    for place, bracket in enumerate(sentence.phrases):
        alone = BracketedSentence(sentence.tags, sentence.words, (bracket,))
        for counted in alone.counted_brackets(counts, parameters):
            yield place, counted
