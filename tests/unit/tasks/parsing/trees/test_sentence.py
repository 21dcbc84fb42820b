"""Sentences of a parser."""

from heedful.tasks.parsing.trees.sentence import join_words, split_words


def test_words_stand_between_spaces_and_brackets_are_escaped():
    assert split_words("  f (\tx\u2009y ) \n") == ["f", "-LRB-", "x\u2009y", "-RRB-"]


def test_white_space_alone_is_no_word():
    assert split_words("\u2009 \xa0\u2003") == []
    assert split_words("a \u2009 \xa0b") == ["a", "\xa0b"]


def test_words_are_joined_by_single_spaces():
    assert join_words(["A", "b"]) == "A b"
    assert join_words(["A", "b"], lower_case=True) == "a b"
