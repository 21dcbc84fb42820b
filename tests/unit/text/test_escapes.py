import pytest

from heedful.text.escapes import Unescaping, has_escapes, unescape

ALL = {
    "&amp;": "&",
    "&apos;": "'",
    "&quot;": '"',
    "&lt;": "<",
    "&gt;": ">",
    "&#124;": "|",
    "&bar;": "|",
    "&#91;": "[",
    "&bra;": "[",
    "&#93;": "]",
    "&ket;": "]",
}


@pytest.mark.parametrize("entity", ALL)
def test_each_entity_becomes_its_character(entity):
    assert has_escapes(f"a{entity}b")
    assert unescape(f"a{entity}b {entity}") == f"a{ALL[entity]}b {ALL[entity]}"


@pytest.mark.parametrize(
    "line", ["AT&T", "a & b;", "&nbsp;", "&#39;", "a@-@b", "@-@", "&lt", "&LT;", ""]
)
def test_what_moses_does_not_write_stays(line):
    assert not has_escapes(line) and unescape(line) == line


def test_a_hyphen_is_joined_again():
    assert unescape("state @-@ of @-@ the @-@ art") == "state-of-the-art"


def test_an_entity_that_was_escaped_is_resolved_once():
    assert unescape("&amp;lt;") == "&lt;"


def test_pairs_with_escapes_are_counted_in_each_reading():
    change = Unescaping()
    pairs = [("a", "b"), ("&lt;", "b"), ("a", "b @-@ c"), ("&lt;", "&gt;")]
    for _ in range(2):
        assert list(change(iter(pairs))) == [("a", "b"), ("<", "b"), ("a", "b-c"), ("<", ">")]
        assert change.pairs == 3
