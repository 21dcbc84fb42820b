"""Which phrases of two trees differ, beside their score."""

import random

import pytest

from heedful.tasks.parsing.trees.differences import differing_phrases
from heedful.tasks.parsing.trees.score import score_sentence
from tests.support.random_trees import GOLD, changed_tree, random_tree, read_tree

RELABELED = read_tree(
    "(S (NP (PRP she)) (VP (VBD saw) (NP (DT the) (NN dog)) (PP (IN with) (ADVP (PRP us)))) (. .))"
)


def named(tree, places):
    return {tree.phrases()[place] for place in places}


def test_phrases_that_the_other_lacks_are_found():
    found = differing_phrases(GOLD, RELABELED)
    assert named(GOLD, found.missed) == {("NP", 2, 6), ("NP", 5, 6)}
    assert named(RELABELED, found.wrong) == {("ADVP", 5, 6)}
    assert found.headings(" (-)", " (+)") == (
        "gold: 2 of 7 phrases missed (-)",
        "predicted: 1 of 6 phrases wrong (+)",
    )
    assert found.f1 == pytest.approx(1000 / 13)
    assert found.differs


def test_what_the_score_does_not_count_is_no_difference():
    gold = read_tree("(TOP (S (NP (NNS dogs)) (ADVP (RB too)) (. .)))")
    other = read_tree("(S (S (NP (NNS dogs)) (PRT (RB too))) (. .))")
    assert named(other, differing_phrases(gold, other).wrong) == {("S", 0, 2)}
    found = differing_phrases(gold, other.children[0].__class__("S", gold.children[0].children))
    assert not found.differs
    assert found.headings() == ("gold: all 3 phrases found", "predicted: all 3 phrases right")


def test_of_equal_phrases_over_each_other_as_many_differ_as_are_too_many():
    gold, other = read_tree("(NP (NP (NP (NN dog))))"), read_tree("(NP (NN dog))")
    found = differing_phrases(gold, other)
    assert (len(found.missed), len(found.wrong)) == (2, 0)


def test_without_a_tree_of_these_words_all_differ():
    nothing = differing_phrases(GOLD, None)
    assert nothing.headings() == ("gold: 7 of 7 phrases missed", "predicted: no tree")
    assert (len(nothing.missed), nothing.wrong, nothing.f1) == (7, frozenset(), 0)
    other = differing_phrases(GOLD, read_tree("(S (NP (NN dog)))"))
    assert (len(other.missed), len(other.wrong), other.f1) == (7, 2, 0)
    assert (
        other.headings(wrong=" (+)")[1]
        == "predicted: different words, so all phrases are wrong (+)"
    )


def test_a_tree_of_punctuation_has_no_phrase_that_counts():
    found = differing_phrases(read_tree("(X (. .))"), read_tree("(Y (. .))"))
    assert not found.differs
    assert found.headings()[0] == "gold: no phrase that counts"


@pytest.mark.parametrize("seed", range(40))
def test_as_many_differ_as_the_score_says(seed):
    source = random.Random(seed)
    words = [f"w{number}" for number in range(source.randint(1, 15))]
    gold = random_tree(source, words)
    for predicted in (changed_tree(source, gold), random_tree(source, words)):
        score = score_sentence(gold, predicted)
        found = differing_phrases(gold, predicted)
        assert len(found.missed) == score.gold - score.matched
        assert len(found.wrong) == score.predicted - score.matched
        assert found.score == score
