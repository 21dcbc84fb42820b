"""Trees: brackets in words, empty words, header lines, and what to do about each."""

import pytest

from heedful.errors import TextError
from heedful.tasks.parsing.trees.read import parse_trees, read_trees

TREE = "(S (NP (NN dog)) (VP (VBZ runs)))"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("(S (NP (DT The) (NN map(s)) (NN here)) (VP (VBZ is)))", "line 1, column 24"),
        ("(S (NP (NN :))) (VP (VBZ runs)))", "line 1, column 32"),
        ("(S (NP (NN bed) (HYPH ) (NN room)) (VP (MD can)))", "line 1, column 17"),
        ("(S (NP (PRP (Dia))) (VP (RB (juga))))", "line 1, column 13"),
        ("(S (NP (NN dog)) (VP (VBZ runs))", "line 1, column 1"),
        ("(X)", "line 1, column 1"),
    ],
)
def test_a_wrong_bracket_is_named_with_its_place_and_the_usual_cure(tmp_path, text, place):
    path = tmp_path / "t.mrg"
    path.write_text(text + "\n")
    with pytest.raises(TextError) as caught:
        list(read_trees(path))
    assert place in str(caught.value)
    assert "write -LRB- and -RRB- for brackets in a word" in str(caught.value)


def test_a_bracket_behind_a_backslash_belongs_to_the_word():
    (tree,) = parse_trees([r"(S (NP (NN f\(x\))) (VP (VBZ 1\/2)))"], "t")
    assert [leaf.word for leaf in tree.leaves()] == ["f-LRB-x-RRB-", "1\\/2"]


def test_header_lines_of_the_penn_treebank_are_skipped(tmp_path):
    path = tmp_path / "t.mrg"
    path.write_text(f"*x*x*x*x*\n*x* (C) 1989 *x*\n\n( {TREE[:-1]}\n ))\n{TREE}\n")
    assert len(list(read_trees(path))) == 2
    with pytest.raises(TextError, match="must begin with an opening bracket"):
        list(parse_trees(["# header", TREE], "t"))
