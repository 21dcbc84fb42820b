"""Reading of bracketed trees."""

import gzip

import pytest

from heedful.errors import TextError
from heedful.tasks.parsing.trees.read import (
    DEEPEST,
    parse_line,
    parse_trees,
    read_tree_lines,
    read_trees,
)


def test_trees_are_read_one_a_line_or_spread(tmp_path):
    file = tmp_path / "trees.gz"
    file.write_bytes(gzip.compress(b"( (S\n   (NP (NN a) )\n (. .) ))\n(S (NN b))(S (NN c))\n"))
    assert list(map(str, read_trees(file))) == ["( (S (NP (NN a)) (. .)))"] + [
        f"(S (NN {word}))" for word in "bc"
    ]


def test_an_empty_line_has_no_tree(tmp_path):
    file = tmp_path / "trees"
    file.write_text("(S (NN a))\n\n", encoding="utf-8")
    first, second = read_tree_lines(file)
    assert str(first) == "(S (NN a))"
    assert second is None


def test_words_may_hold_thin_spaces():
    lines = ["(S (NN a\u2009b))", "(S (NN \u2009 \xa0c))"]
    assert [tree.words for tree in parse_trees(lines, "x")] == [("a\u2009b",), ("\xa0c",)]


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("(S (NN a)\n(S (NN b))", "line 1, column 1", "must be closed"),
        ("(S (NN a)) )", "line 1, column 12", "a closing bracket"),
        ("(S (NN a))\n dog", "line 2, column 2", "“dog”"),
        ("(S\n  (NP))", "line 2, column 3", "must hold a word"),
        ("()", "line 1, column 1", "must hold a word"),
        ("(S (NN a b))", "line 1, column 10", "“b”"),
        ("(S a (NN b))", "line 1, column 11", "“a” next to"),
        ("(S (NN a) b)", "line 1, column 11", "“b”"),
        ("(S (NN \u2009 ))", "line 1, column 4", "must hold a word"),
        ("-3.25\t(S (NN a))", "line 1, column 1", "--scores"),
        ("(" * (DEEPEST + 2), f"line 1, column {DEEPEST + 2}", "nested phrases"),
    ],
)
def test_what_is_no_tree_is_named_with_its_place(text, place, reason):
    with pytest.raises(TextError, match=f"^text, {place}: .*{reason}"):
        list(parse_trees(text.split("\n"), "text"))


def test_two_trees_in_one_line_are_refused_where_lines_count():
    with pytest.raises(TextError, match="line 3 has 2"):
        parse_line("(S (NN a)) (S (NN b))", "text", 3)


def test_a_tree_that_goes_on_in_the_next_line_is_refused_where_lines_count(tmp_path):
    file = tmp_path / "trees"
    file.write_text("(S (NN a))\n(S\n  (NN b))\n", encoding="utf-8")
    assert len(list(read_trees(file))) == 2
    reason = "line 2, column 1: .* in its line, but got the end of the line, with one still open"
    with pytest.raises(TextError, match=reason):
        read_tree_lines(file)


def test_a_deep_tree_can_be_used():
    depth = DEEPEST - 1
    (tree,) = parse_trees(["(A " * depth + "(B b)" + ")" * depth], "text")
    assert len(tree.phrases()) == depth
    assert str(tree).count("(A") == depth
