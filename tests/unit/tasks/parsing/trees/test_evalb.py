"""EVALB's score; what its own program printed is compared in test_evalb_table.py."""

import pytest

from heedful.tasks.parsing.trees.evalb import ERROR, SKIP, VALID, EvalbSentence, evalb, read_line
from heedful.tasks.parsing.trees.evalb_parameters import COLLINS, EvalbParameters

GOLD = "(S (NP (NN a)) (VP (VB b) (NP (NN c) (NN d))))"


def sentence(gold, test, parameters=COLLINS):
    (found,) = evalb([gold], [test], parameters).sentences
    return found


def test_counts_of_a_sentence():
    found = sentence(GOLD, "(S (NP (NN a)) (VP (JJ b)) (NP (NN c) (NN d)))")
    assert found == EvalbSentence(4, matched=3, gold=4, test=4, words=4, tags=3)
    assert not found.is_complete


def test_several_trees_in_a_line_are_one_sentence():
    found = sentence("(S (A a) (B b))", " (X (A a)) (B b)\t")
    assert (found.gold, found.test, found.tags) == (1, 1, 2)


@pytest.mark.parametrize(
    ("gold", "test", "status", "reason"),
    [
        (GOLD, "", SKIP, ""),
        ("", "", SKIP, ""),
        ("(S (NN a))", "(. .)", SKIP, ""),
        ("", "(NN a)", ERROR, "0 words are counted in the gold tree, but 1 in the predicted tree"),
        ("(S (NN a) (, ,))", "(S (NN a) (: ,))", VALID, ""),
        (
            "(S (NN a) (, ,))",
            "(S (NN a) (NN ,))",
            ERROR,
            "1 words are counted in the gold tree, but 2 in the predicted tree",
        ),
        ("(S (NN a))", "(S (NN b))", ERROR, "the words “a” and “b”"),
        ("(S (NN a))", "(S (NN a)", ERROR, "test: a bracket is not closed"),
        ("(S (NN a)))", "(S (NN a))", ERROR, "gold: a closing bracket has no opening bracket"),
        ("(S (NN a b))", "", ERROR, "gold: “a b))” stands outside a bracket"),
    ],
)
def test_errors_and_skips(gold, test, status, reason):
    found = sentence(gold, test)
    assert found.status == status
    assert found.reason.startswith(reason)
    assert bool(found.reason) == bool(reason)
    assert (found.words > 0) == (status == VALID)


def test_errors_and_skips_leave_the_totals():
    totals = evalb([GOLD, GOLD, GOLD], [GOLD, "", "(S (NN a))"]).all
    assert (totals.number(VALID), totals.number(SKIP), totals.number(ERROR)) == (1, 1, 1)
    assert (totals.recall, totals.precision, totals.f1, totals.complete) == (100, 100, 100, 100)
    assert (totals.total("words"), totals.tagging, totals.crossing) == (4, 100, 0)


def test_nothing_valid_scores_nothing():
    totals = evalb([GOLD], [""]).all
    assert totals.f1 is None
    assert (totals.recall, totals.complete, totals.crossing, totals.tagging) == (0, 0, 0, 0)


def test_words_left_out_count_for_the_length_but_traces():
    line = "(S (NN a) (, ,) (-NONE- *) (NN b))"
    result = evalb([line, "(S (NN a))"], [line, "(S (NN a))"], EvalbParameters(cutoff=2))
    assert [one.length for one in result.sentences] == [3, 1]
    assert [len(part.sentences) for part in (result.all, result.short)] == [2, 1]


def test_trees_without_tags_get_those_of_the_gold():
    gold = "(S (NP (NN a) (-NONE- *)) (, ,) (VP (VB b)))"
    test = "(S (NP (XX a)) (XX ,) (VP (XX b)))"
    result = evalb([gold, gold], [test, ""])
    assert result.tags_from_gold
    assert result.sentences[0] == EvalbSentence(4 - 1, matched=3, gold=3, test=3, words=2, tags=2)
    assert result.sentences[1].status == SKIP
    assert not evalb([gold, gold], [test, gold]).tags_from_gold


def test_tags_are_not_taken_from_another_sentence_or_a_broken_one():
    result = evalb(["(S (. a))", "(S"], ["(S (XX a) (XX b))", "(S (XX c))"])
    assert result.tags_from_gold
    assert [one.status for one in result.sentences] == [ERROR, ERROR]


def test_a_quotation_mark_counts_if_its_tag_is_deleted_on_one_side_only():
    parameters = EvalbParameters(quote_labels=frozenset(("''", "POS")))
    pair = "(S (NP (NN a) ('' ')) (VP (VB b)))", "(S (NP (NN a)) (POS ') (VP (VB b)))"
    for gold, test in (pair, pair[::-1]):
        found = sentence(gold, test, parameters)
        assert found == EvalbSentence(3, matched=2, gold=3, test=3, words=3, tags=2)
        assert sentence(gold, test).status == ERROR


def test_a_quotation_mark_may_be_put_back_twice():
    parameters = EvalbParameters(quote_labels=frozenset((":", "NN")))
    found = sentence("(S (X (: ')) (: '))", "(S (NN ') (NN '))", parameters)
    # EVALB of January 2006 prints these, although a bracket of one word spans two then
    assert found == EvalbSentence(2, matched=1, gold=2, test=1, words=2)


def test_where_the_program_stops_is_known():
    wrong = "(S (NN a))"
    lines = [GOLD, *[wrong] * 4]
    result = evalb([GOLD] * 5, lines, EvalbParameters(max_error=1))
    assert result.stop == 4
    assert evalb([GOLD] * 5, lines, EvalbParameters(max_error=3)).stop is None
    assert len(result.sentences) == 5


def test_odd_brackets_are_read_as_evalb_does():
    read = read_line("((S(NP)( a)(NN\tb)))")
    assert (read.tags, read.words) == (("", "NN"), ("a", "b"))
    assert read.phrases == (("", 0, 2), ("S", 0, 2), ("NP", 0, 0))
