"""Labels of phrases with those of their parents."""

import random

import nltk
import pytest

from heedful.paper.parsing.parent_annotation import annotate_parents, remove_parents
from tests.support.plain_pcfg import random_tree, read

pytestmark = pytest.mark.task("parsing")


def test_labels_are_nltks():
    draw = random.Random(3)
    for _ in range(20):
        tree = random_tree(draw, 6)
        theirs = nltk.Tree.fromstring(str(tree))
        labels = {}
        for place in theirs.treepositions():
            if isinstance(theirs[place], nltk.Tree) and theirs[place].height() > 2:
                labels[place] = theirs[place].label(), theirs[place[:-1]].label() if place else ""
        ours, open_nodes = {}, [((), annotate_parents(tree))]
        while open_nodes:
            place, node = open_nodes.pop()
            if node.word is None:
                ours[place] = tuple(node.label.split(" "))
                open_nodes += [((*place, i), child) for i, child in enumerate(node.children)]
        assert ours == labels


def test_removing_parents_gives_the_tree_back():
    draw = random.Random(5)
    for tree in (random_tree(draw, draw.randint(1, 9)) for _ in range(30)):
        assert remove_parents(annotate_parents(tree)) == remove_parents(tree) == tree


def test_tags_have_no_parents():
    (tree,) = read("(S (NP (D the) (N man)) (VP (V saw)))")
    assert annotate_parents(tree).tags == tree.tags
    assert annotate_parents(tree).phrases() == [("S ", 0, 3), ("NP S", 0, 2), ("VP S", 2, 3)]
