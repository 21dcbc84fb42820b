"""The phrases of the built-in grammar."""

import hashlib
import json
import re

import pytest

from heedful.data.toy_grammar.constituents import brackets, split_brackets
from heedful.data.toy_grammar.corpus import sample_pairs, sample_trees, split_pairs
from heedful.tasks.parsing.trees.clean import clean_tree
from heedful.tasks.parsing.trees.read import parse_line

pytestmark = pytest.mark.task("parsing")

# Of the brackets of “sample_trees(6000, 1)”, written by hand.
SEEN = {
    "the big red dog": "(NP (DT the) (JJ big) (JJ red) (NN dog))",
    "this girl slept in front of this beautiful small house": (
        "(S (NP (DT this) (NN girl)) (VP (VBD slept) (PP (IN in) (NP (NP (NN front)) (PP (IN of) "
        "(NP (DT this) (JJ beautiful) (JJ small) (NN house)))))))"
    ),
    "my bees ran because they were sad": (
        "(S (NP (PRP$ my) (NNS bees)) (VP (VBD ran) (SBAR (IN because) (S (NP (PRP they)) (VP "
        "(VBD were) (ADJP (JJ sad)))))))"
    ),
    "a dog buys this cake but does not see it": (
        "(S (NP (DT a) (NN dog)) (VP (VP (VBZ buys) (NP (DT this) (NN cake))) (CC but) (VP (VBZ "
        "does) (RB not) (VP (VB see) (NP (PRP it))))))"
    ),
    "my young girl who sleeps dances": (
        "(S (NP (NP (PRP$ my) (JJ young) (NN girl)) (SBAR (WHNP (WP who)) (S (VP (VBZ sleeps))))) "
        "(VP (VBZ dances)))"
    ),
    "my boy that i saw does not dance": (
        "(S (NP (NP (PRP$ my) (NN boy)) (SBAR (WHNP (WDT that)) (S (NP (PRP i)) (VP (VBD saw))))) "
        "(VP (VBZ does) (RB not) (VP (VB dance))))"
    ),
    "the books are not red": (
        "(S (NP (DT the) (NNS books)) (VP (VBP are) (RB not) (ADJP (JJ red))))"
    ),
    "red schools near the tree": (
        "(NP (NP (JJ red) (NNS schools)) (PP (IN near) (NP (DT the) (NN tree))))"
    ),
}


def words_of(line):
    tree = parse_line(line, "grammar")
    assert tree is not None
    assert clean_tree(tree) == tree
    return " ".join(tree.words)


def test_the_words_are_those_of_the_english_sentences():
    lines = map(brackets, sample_trees(4000, seed=3))
    assert [words_of(line) for line in lines] == [en for en, _ in sample_pairs(4000, seed=3)]


def test_the_split_is_that_of_the_pairs():
    for found, pairs in zip(split_brackets(300, 40, 1), split_pairs(300, 40, 1), strict=True):
        assert [words_of(line) for line in found] == [english for english, _ in pairs]


def test_the_split_of_a_seed_is_what_it_was_before_there_were_phrases():
    text = json.dumps(split_pairs(3000, 300, 1), ensure_ascii=False).encode()
    known = "fd6123209b9bdc344ef15bb48e7a43a4836f716680b896e1c22f69b253dfc84a"
    assert hashlib.sha256(text).hexdigest() == known


def test_phrases_are_those_of_the_sentence():
    lines = [*map(brackets, sample_trees(6000, 1)), *split_brackets(5, 1, 1)[1]]
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
