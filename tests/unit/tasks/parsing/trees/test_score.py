"""The published score: EVALB's brackets, and no sentence left out."""

import numpy as np
import pytest

from heedful.evaluation.significance import Resampling, compare, confidence_intervals
from heedful.tasks.parsing.trees.evalb import evalb
from heedful.tasks.parsing.trees.read import parse_trees, read_tree_lines
from heedful.tasks.parsing.trees.score import BracketStatistics, score_trees


def read(text):
    (tree,) = parse_trees([text], "text")
    return tree


GOLD = read("(S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))")
FOUND = read("(S (NP (NNP John)) (VP (VBZ has)) (NP (DT a) (NN cat)) (. .))")


def test_brackets_are_counted_as_by_hand():
    # gold S[1,4] NP[1,1] VP[2,4] NP[3,4]; predicted S, NP, VP[2,2], NP[3,4]
    found = read(str(FOUND).replace("cat", "dog"))
    score = score_trees([GOLD], [found])
    assert (score.precision, score.recall, score.f1) == (75, 75, 75)
    assert (score.exact_match, score.crossing, score.unparsed) == (0, 0, 0)
    assert score.tagging == 100
    assert score_trees([GOLD], [GOLD]).f1 == score_trees([GOLD], [GOLD]).exact_match == 100


@pytest.mark.parametrize("bad", [None, FOUND, read("(S (NNP John))")])
def test_a_sentence_without_its_tree_misses_its_gold_brackets(bad):
    score = score_trees([GOLD, GOLD], [GOLD, bad])
    assert (score.precision, score.recall, score.unparsed) == (100, 50, 1)
    assert score.f1 == pytest.approx(200 / 3)
    own = evalb([str(GOLD)] * 2, [str(GOLD), "" if bad is None else str(bad)])
    assert own.all.f1 == 100  # EVALB leaves it out


def test_punctuation_is_that_of_the_gold_tags():
    untagged = read("(S (NP (XX John)) (VP (XX has) (NP (XX a) (XX dog))) (XX .))")
    score = score_trees([GOLD], [untagged])
    assert score.exact_match == 100
    assert score.tagging is None
    assert score.to_dict()["tagging"] is None


def test_without_any_tree_there_are_no_tags_and_no_crossing():
    score = score_trees([GOLD], [None])
    assert (score.f1, score.tagging, score.crossing) == (0, None, 0)


def test_crossing_is_of_parsed_sentences():
    crossed = read("(S (NP (NNP John) (VBZ has)) (NP (DT a) (NN dog)) (. .))")
    assert score_trees([GOLD, GOLD], [crossed, None]).crossing == 1


def test_without_errors_it_is_evalbs(corpora):
    files = [corpora / "fixtures-evalb" / f"sample.{end}" for end in ("gld", "tst")]
    lines = [file.read_text(encoding="utf-8").split("\n") for file in files]
    own = evalb(*(side[:24] for side in lines))
    pairs = []
    for one, other, counted in zip(*lines, own.sentences, strict=False):
        if counted.status == 0 and other.startswith("(S"):
            pairs.append((read(one), read(other), counted))
    assert len(pairs) > 10
    gold, found, counts = zip(*pairs, strict=True)
    score = score_trees(gold, found)
    for mine, theirs in zip(score.sentences, counts, strict=True):
        assert (mine.matched, mine.gold, mine.predicted) == (
            theirs.matched,
            theirs.gold,
            theirs.test,
        )
        assert (mine.crossing, mine.words, mine.tags) == (
            theirs.crossing,
            theirs.words,
            theirs.tags,
        )


def test_long_sentences_can_be_left_out():
    long = read("(S " + "(NN a) " * 41 + ")")
    score = score_trees([GOLD, long], [GOLD, None])
    assert score.up_to(40).f1 == 100
    assert len(score.up_to(41).sentences) == 2


def test_intervals_and_differences_of_f1():
    counts = np.array([[4, 4, 4], [3, 4, 4], [0, 0, 4], [4, 5, 4]], dtype=float)
    statistics = BracketStatistics(counts)
    assert statistics.score == pytest.approx(200 * 11 / (13 + 16))
    ((low, high),) = confidence_intervals([statistics], Resampling(500, 1))
    assert low < statistics.score < high
    (test,) = compare([statistics], [statistics], resampling=Resampling(200, 1))
    assert (test.difference, test.p_value) == (0, 1)


def test_lines_are_sentences(tmp_path):
    (tmp_path / "trees").write_text(f"{GOLD}\n\n", encoding="utf-8")
    found = read_tree_lines(tmp_path / "trees")
    assert score_trees([GOLD, GOLD], found).unparsed == 1
