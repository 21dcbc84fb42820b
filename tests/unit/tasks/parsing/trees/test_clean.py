"""Trees without traces and function tags."""

import pytest

from heedful.tasks.parsing.trees.clean import TreeCleaning, bare_label, clean_tree, clean_trees
from heedful.tasks.parsing.trees.read import parse_trees


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("( (S (NP-SBJ-1 (NN a)) (VP (VB b) (NP (-NONE- *-1)))) )", "(S (NP (NN a)) (VP (VB b)))"),
        ("(TOP (S=2 (-LRB- -LRB-) (NN a)))", "(S (-LRB- -LRB-) (NN a))"),
        ("( (NN a) )", "(NN a)"),
        ("( (S (NN a)) (. .))", "(TOP (S (NN a)) (. .))"),
        ("(ROOT (PRT|ADVP (RP up)))", "(PRT (RP up))"),
    ],
)
def test_traces_function_tags_and_the_outer_bracket_go(raw, clean):
    (tree,) = parse_trees([raw], "text")
    assert str(clean_tree(tree)) == clean


def test_what_goes_is_counted():
    report = TreeCleaning()
    lines = ["(S (NP-SBJ (NN a)) (NP (-NONE- *)))", "( (S (-NONE- *)))", "(S (NN b))"]
    kept = clean_trees(parse_trees(lines, "text"), report)
    assert list(map(str, kept)) == ["(S (NP (NN a)))", "(S (NN b))"]
    assert report == TreeCleaning(trees=2, words=2, traces=2, function_tags=1, empty=[2])
    assert report.summary() == (
        "2 trees with 2 words; 2 empty nodes left out; function tags cut from 1 label; "
        "1 tree left out for having no words (number 2)"
    )


def test_a_label_that_begins_with_a_hyphen_stays():
    assert bare_label("-RRB-") == "-RRB-"
