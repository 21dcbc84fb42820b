"""Trees that are drawn without parsing."""

import pytest

from heedful.errors import TextError
from heedful.paper.parsing.floors import TreeFloors
from tests.support.plain_pcfg import read

pytestmark = pytest.mark.task("parsing")

TREES = (
    "(S (NP (D the) (N dog)) (VP (V saw) (NP (D the) (N man))) (. .))",
    "(S (NP (D the) (N man)) (VP (V saw) (PP (P with) (NP (D the) (N dog)))) (. .))",
    "(FRAG (NP (D the) (N dog)))",
)


def test_a_flat_tree_has_the_commonest_root_and_tags():
    floors = TreeFloors(read(*TREES))
    assert str(floors.flat(["the", "dog", "."])) == "(S (D the) (N dog) (. .))"


@pytest.mark.parametrize(
    ("sentence", "tree"),
    [
        ("the dog", "(S (D the) (N dog))"),
        ("man saw the dog .", "(S (N man) (VP (V saw) (NP (D the) (N dog))) (. .))"),
        # No phrase begins with “dog”: NP is the commonest.
        ("the dog saw the man . .", "(S (D the) (NP (N dog) (VP (V saw) (NP (D the) (N man)))) "
         "(. .) (. .))"),
        ("dog", "(S (N dog))"),
        ("dog .", "(S (N dog) (. .))"),
        (". .", "(S (. .) (. .))"),
    ],
)  # fmt: skip
def test_right_branching_trees_guess_labels_by_the_first_word(sentence, tree):
    assert str(TreeFloors(read(*TREES)).right_branching(sentence.split())) == tree


def test_right_branching_trees_of_long_sentences_can_be_read_again():
    tree = TreeFloors(read(*TREES)).right_branching(["the"] * 2000 + ["dog", "."])
    assert len(tree.words) == 2002
    assert read(str(tree)) == [tree]


def test_without_inner_phrases_the_label_of_the_root_is_guessed():
    floors = TreeFloors(read(*["(S (D the) (N dog) (V saw))"] * 2))
    found = floors.right_branching(["the", "dog", "saw"])
    assert str(found) == "(S (D the) (S (N dog) (V saw)))"


def test_a_treebank_needs_a_phrase():
    with pytest.raises(TextError, match="must have at least one phrase, but this one has none"):
        TreeFloors(read("(N dog)"))
