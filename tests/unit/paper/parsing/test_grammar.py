"""Rules counted in trees, beside nltk's."""

from collections import Counter

import nltk
import pytest

from heedful.paper.parsing.grammar import Symbol, TreebankRules, rules_of
from tests.support.plain_pcfg import read

pytestmark = pytest.mark.task("parsing")

TREES = [
    "(S (NP (NNS dogs)) (VP (VBP chase) (NP (DT the) (NNS cats))))",
    "(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))",
    "(S (S (NP (NNS dogs)) (VP (VBP sleep))) (CC and) (S (NP (NNS cats)) (VP (VBP chase))))",
    "(NP (NP (DT the) (NN cats)) (, ,) (DT the) (NN dog))",
]


def test_rules_and_their_probabilities_are_nltks():
    found = TreebankRules(read(*TREES))
    productions = [p for line in TREES for p in nltk.Tree.fromstring(line).productions()]
    theirs = {
        (p.lhs().symbol(), tuple(map(str, p.rhs()))): p.prob()
        for p in nltk.induce_pcfg(nltk.Nonterminal("S"), productions).productions()
        if p.is_nonlexical()
    }
    ours = {
        (label, tuple(child.label for child in children)): found.rule_probability((label, children))
        for label, children in found.rules
    }
    assert ours == theirs
    counts = Counter((p.lhs().symbol(), p.rhs()) for p in productions if p.is_nonlexical())
    assert sorted(counts.values()) == sorted(found.rules.values())


def test_roots_are_counted():
    found = TreebankRules(read(*TREES, "(NN dog)"))
    assert found.root_probability(Symbol("S")) == 3 / 5
    assert found.root_probability(Symbol("NN", is_tag=True)) == 1 / 5
    assert found.root_probability(Symbol("NN")) == 0


def test_a_label_and_a_tag_of_one_spelling_are_two_symbols():
    (tree,) = read("(X (X a) (X (Y b)))")
    tag, label = Symbol("X", is_tag=True), Symbol("X")
    assert rules_of(tree) == [("X", (tag, label)), ("X", (Symbol("Y", is_tag=True),))]
    assert TreebankRules([tree]).symbols == [tag, Symbol("Y", is_tag=True), label]


def test_what_is_not_in_the_treebank_has_probability_0():
    found = TreebankRules(read(*TREES))
    assert found.rule_probability(("NP", (Symbol("VP"),))) == 0
    assert found.rule_probability(("QP", (Symbol("NP"),))) == 0
