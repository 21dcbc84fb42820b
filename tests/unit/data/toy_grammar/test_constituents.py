"""The phrases of the embedded grammar."""

import re

from heedful.data.toy_grammar.constituents import sample_brackets, split_brackets
from heedful.data.toy_grammar.corpus import sample_pairs, split_pairs
from heedful.trees.clean import clean_tree
from heedful.trees.read import parse_line

SEEN = {
    "the big red dog": "(NP (DT the) (JJ big) (JJ red) (NN dog))",
}


def words_of(line):
    tree = parse_line(line, "grammar")
    assert tree is not None
    assert clean_tree(tree) == tree
    return " ".join(tree.words)


def test_the_words_are_those_of_the_english_sentences():
    lines = sample_brackets(4000, seed=3)
    assert [words_of(line) for line in lines] == [en for en, _ in sample_pairs(4000, seed=3)]


def test_the_split_is_that_of_the_pairs():
    for found, pairs in zip(split_brackets(300, 40, 1), split_pairs(300, 40, 1), strict=True):
        assert [words_of(line) for line in found] == [english for english, _ in pairs]


def test_phrases_are_those_of_the_sentence():
    lines = [*sample_brackets(6000, 1), *split_brackets(5, 1, 1)[1]]
    found = {words_of(line): line for line in lines}
    for sentence, line in SEEN.items():
        assert found[sentence] == line
    every = " ".join(found.values())
    labels = set(re.findall(r"\((\S+) (?=\()", every))
    tags = set(re.findall(r"\((\S+) [^()]+\)", every))
    assert labels == {"S", "NP", "VP", "PP", "SBAR", "WHNP", "ADJP"}
    assert tags == {
        *("DT", "PRP$", "JJ", "NN", "NNS", "PRP", "VB", "VBD", "VBP", "VBZ", "RB", "IN", "CC"),
        *("WP", "WDT"),
    }
    for pattern in (
        r"\(NP \(NP [^S]*\) \(SBAR \(WHNP \(WP who\)\) \(S \(VP",
        r"\(VP \(VBZ does\) \(RB not\) \(VP \(VB ",
        r"\(SBAR \(IN because\) \(S \(NP \(PRP ",
        r"\(VP \(VP .*\) \(CC and\) \(VP ",
        r"\(VP \(VBZ is\) \(ADJP \(JJ ",
        r"\(VP \(VP .*\) \(CC but\) \(VP ",
    ):
        assert re.search(pattern, every), pattern
