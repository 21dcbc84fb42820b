"""Brackets of two trees of one sentence."""

import pytest

from heedful.tasks.parsing.trees.brackets import (
    Bracket,
    BracketedSentence,
    count_crossing,
    count_matches,
    count_tags,
)
from heedful.tasks.parsing.trees.evalb_parameters import COLLINS, EvalbParameters
from heedful.tasks.parsing.trees.read import parse_line


def brackets(text, parameters=COLLINS):
    sentence = BracketedSentence.of(parse_line(text, "text"))
    return sentence.counted_brackets(sentence.counted_words(parameters), parameters)


def test_words_that_do_not_count_leave_the_spans_first():
    text = "(TOP (S (`` ``) (NP-SBJ=2 (NN a) (-NONE- *)) (, ,) (VP (VB b) (NP (-NONE- *)))))"
    assert brackets(text) == [("S", 0, 2), ("NP", 0, 1), ("VP", 1, 2)]


def test_words_may_be_left_out_by_themselves():
    parameters = EvalbParameters(delete_words=frozenset("b"))
    assert brackets("(S (NN a) (X (NN b)))", parameters) == [("S", 0, 1)]


def test_a_label_that_begins_with_a_hyphen_is_cut_too():
    assert brackets("(-X- (NN a))") == [("", 0, 1)]


@pytest.mark.parametrize(
    ("test", "matched"),
    [
        ("(S (NP (NN a)) (VP (VB b) (NP (NN c) (NN d))))", 4),
        ("(S (NP (NN a)) (VP (VB b)) (NP (NN c) (NN d)))", 3),
        ("(S (NN a) (VB b) (NN c) (NN d))", 1),
        ("(S (S (NP (NP (NN a))) (VP (VB b) (NP (NN c) (NN d)))))", 4),
    ],
)
def test_a_bracket_matches_one_of_the_other_side(test, matched):
    gold = brackets("(S (NP (NN a)) (VP (VB b) (NP (NN c) (NN d))))")
    assert count_matches(gold, brackets(test), COLLINS) == matched
    assert count_matches(brackets(test), gold, COLLINS) == matched


def test_labels_may_be_equivalent_or_not_looked_at():
    gold, test = [Bracket("ADVP", 0, 1), Bracket("A", 1, 2)], [("PRT", 0, 1), ("B", 1, 2)]
    test = [Bracket(*one) for one in test]
    assert count_matches(gold, test, COLLINS) == 1
    assert count_matches(gold, test, EvalbParameters(labeled=False)) == 2


def test_crossing_is_counted_on_the_test_side():
    gold = brackets("(S (A (NN a) (NN b)) (B (NN c)) (C (NN d) (NN e)))")
    test = brackets("(S (NN a) (A (A (NN b) (B (NN c)) (NN d))) (NN e))")
    assert count_crossing(gold, test) == 2
    assert count_crossing(test, gold) == 2
    assert count_crossing(gold, [Bracket("X", 1, 3)]) == 1
    assert count_crossing(gold, [Bracket("X", 0, 2), Bracket("X", 2, 3)]) == 0
    assert count_crossing([Bracket("X", 1, 3)], gold) == 1


def test_tags_are_compared_one_by_one():
    assert count_tags(["NN", "ADVP", "NN-1"], ["NN", "PRT", "NN"], COLLINS) == 2
