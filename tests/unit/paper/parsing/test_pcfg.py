"""The parser by a grammar, beside nltk's and beside every tree there is."""

import math
import random

import nltk
import pytest

from heedful.errors import TextError
from heedful.paper.parsing.parent_annotation import annotate_parents, remove_parents
from heedful.paper.parsing.pcfg import Pcfg
from tests.support.plain_pcfg import PlainGrammar, random_tree, read

pytestmark = pytest.mark.task("parsing")

TREES = (
    "(S (NP (D the) (N man)) (VP (V saw) (NP (D the) (N dog))))",
    "(S (NP (D the) (N man)) (VP (V saw) (NP (NP (D the) (N dog)) (PP (P with) (NP (N man))))))",
    "(S (NP (N man)) (VP (VP (V saw) (NP (N dog))) (PP (P with) (NP (D the) (N park)))))",
    "(S (NP (D the) (N park)) (VP (V saw) (NP (D the) (N man)) (PP (P in) (NP (N park)))))",
    "(S (VP (V saw)))",
)
SENTENCES = (
    "the man saw the dog with the park",
    "saw",
    "man saw park in the dog with man with the man",
    "the dog with the park in the park saw the man in the park with the dog",
)


def _nltk_best(trees, sentence):
    productions = [p for tree in trees for p in nltk.Tree.fromstring(str(tree)).productions()]
    grammar = nltk.induce_pcfg(nltk.Nonterminal("S"), productions)
    return next(nltk.ViterbiParser(grammar).parse(sentence.split()), None)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_best_tree_is_nltks(sentence):
    parser = Pcfg(read(*TREES), rare=0)
    found, theirs = parser.parse(sentence.split()), _nltk_best(TREES, sentence)
    assert str(found.tree) == theirs.pformat(margin=1000)
    assert math.isclose(math.exp(found.log_probability), theirs.prob())


def test_random_grammars_have_nltks_probability():
    draw, parsed = random.Random(2), 0
    for _ in range(10):
        trees = [
            type(tree)("S", (tree,))
            for tree in (random_tree(draw, draw.randint(1, 6), labels="AB") for _ in range(6))
        ]
        words = draw.choices("abcd", k=draw.randint(1, 6))
        found = Pcfg(trees, rare=0).parse(words).log_probability
        theirs = _nltk_best(trees, " ".join(words))
        assert math.isclose(math.exp(found), theirs.prob() if theirs else 0)
        parsed += theirs is not None
    assert parsed > 4


def _check_with_every_tree(trees, words, longest):
    plain = PlainGrammar(trees)
    every = {tree: plain.probability(tree) for tree in plain.trees(words, longest)}
    found = Pcfg(trees, rare=0).parse(words)
    best = max(every.values(), default=0)
    assert math.isclose(found.log_probability, math.log(best) if best else -math.inf)
    if best:
        assert math.isclose(every[found.tree], best)
    return len(every)


# The best chain has at most as many rules as there are labels; longer ones go round.
@pytest.mark.parametrize("seed", range(8))
def test_no_tree_is_better_where_unary_rules_form_cycles(seed):
    draw = random.Random(seed)
    cycles = read("(A (B (A (x a))))", "(B (S (A (B (y b)))))")
    trees = [*cycles, *(random_tree(draw, draw.randint(2, 4)) for _ in range(2))]
    _check_with_every_tree(trees, draw.choices("ab", k=1), longest=6)
    _check_with_every_tree(trees, draw.choices("ab", k=2), longest=4)


def test_no_tree_of_four_words_is_better():
    trees = read(
        "(A (B (A (x a))))", "(B (A (x a)) (A (B (x b))))", "(B (x a) (A (x b)) (B (x b)))"
    )
    for words in ("aba", "abba", "bbbb"):
        assert _check_with_every_tree(trees, [*words], longest=3) > 100


def test_the_probability_of_a_tree_is_the_product_of_its_rules():
    draw = random.Random(4)
    trees = [random_tree(draw, draw.randint(1, 8)) for _ in range(30)]
    plain, parser = PlainGrammar(trees), Pcfg(trees, rare=0)
    for tree in trees:
        assert math.isclose(parser.log_probability(tree), math.log(plain.probability(tree)))
    for line in ("(S (S (NP (N a))))", "(A (x zebra))", "(A (q a))"):
        assert parser.log_probability(*read(line)) == -math.inf


def test_a_grammar_with_parents_is_one_of_annotated_trees():
    trees = read(*TREES)
    parser, plain = Pcfg(trees, rare=0, parents=True), Pcfg(map(annotate_parents, trees), rare=0)
    for sentence in SENTENCES:
        words = sentence.split()
        parse, annotated = parser.parse(words), plain.parse(words)
        assert parse.log_probability == annotated.log_probability
        assert parse.tree == remove_parents(annotated.tree)
        if parse.log_probability > -math.inf:
            assert math.isclose(parser.log_probability(parse.tree), parse.log_probability)
    assert str(parser.parse(["dog", "the"]).tree) == "(S (N dog) (D the))"


def test_parents_tell_a_subject_from_an_object():
    # Pronouns are subjects and names objects; without parents both are any noun phrase.
    trees = read(
        *("(S (NP (P he)) (VP (V saw) (NP (D the) (N man))))",) * 3,
        *("(S (NP (P he)) (VP (V saw) (NP (N man))))",),
    )
    likely, unlikely = (
        *read("(S (NP (P he)) (VP (V saw) (NP (D the) (N man))))"),
        *read("(S (NP (D the) (N man)) (VP (V saw) (NP (P he))))"),
    )
    assert Pcfg(trees, rare=0).log_probability(unlikely) > -math.inf
    parents = Pcfg(trees, rare=0, parents=True)
    assert parents.log_probability(unlikely) == -math.inf
    assert parents.log_probability(likely) > Pcfg(trees, rare=0).log_probability(likely)


def test_unknown_words_are_parsed_by_their_class():
    parser = Pcfg(read(*TREES, "(S (NP (D a) (N girl)) (VP (V walked)))"))
    found = parser.parse(["the", "kangaroo", "jumped"])
    assert str(found.tree) == "(S (NP (D the) (N kangaroo)) (VP (V jumped)))"
    assert math.isclose(found.log_probability, parser.log_probability(found.tree))


def test_given_tags_are_kept():
    parser = Pcfg(read(*TREES))
    words = ["the", "saw", "saw", "the", "park"]
    assert parser.parse(words, ["D", "N", "V", "D", "N"]).tree.tags == ("D", "N", "V", "D", "N")
    assert "N" not in parser.parse(words).tree.tags[1:2]


def test_a_sentence_without_a_tree_gets_a_flat_one():
    parser = Pcfg(read(*TREES), rare=0)
    found = parser.parse(["dog", "the"])
    assert found.log_probability == -math.inf
    assert str(found.tree) == "(S (N dog) (D the))"
    assert str(parser.parse(["the"], ["UH"]).tree) == "(S (UH the))"


def test_one_word_may_be_a_tree_without_a_phrase():
    parser = Pcfg(read("(UH yes)", "(UH yes)", "(S (UH no))"), rare=0)
    assert str(parser.parse(["yes"]).tree) == "(UH yes)"
    assert math.isclose(parser.parse(["yes"]).log_probability, math.log(2 / 3 * 2 / 3))
    assert math.isclose(parser.parse(["no"]).log_probability, math.log(2 / 3 * 1 / 3))


def test_trees_of_tagged_words_alone_make_a_parser():
    parser = Pcfg(read("(UH yes)", "(UH yes)"))
    assert str(parser.parse(["yes"]).tree) == "(UH yes)"
    assert str(parser.parse(["yes", "yes"]).tree) == "(S (UH yes) (UH yes))"


def test_what_cannot_be_parsed_is_said():
    with pytest.raises(TextError, match="must have at least one tree, but this one has none"):
        Pcfg([])
    parser = Pcfg(read(*TREES))
    with pytest.raises(TextError, match="must have at least one word, but has none"):
        parser.parse([])
    with pytest.raises(TextError, match="got 2 tags for 1 words"):
        parser.parse(["the"], ["D", "N"])
