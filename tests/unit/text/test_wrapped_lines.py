"""Lines that were broken at a width are joined; other line breaks stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.text.wrapped_lines import join_lines, join_wrapped
from tests.support.growth import assert_grows_linearly

TEXTS = st.lists(
    st.sampled_from(
        ["a dog", " b ", "", "  ", "- c", "1. d", "3. e", "x\ty", "犬は", "\n", "\r\n"]
    ),
    max_size=12,
).map("\n".join)


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("the big\nred dog", "the big red dog"),
        ("the big \r\n  red dog\r\nsleeps\r\n", "the big red dog sleeps\r\n"),
        ("the big\rred dog", "the big red dog"),
        ("one\ntwo\n\nthree\nfour\n\n\n", "one two\n\nthree four\n\n\n"),
        ("\n\none\ntwo", "\n\none two"),
        ("my list:\n- the big\n  red dog\n- a cat", "my list:\n- the big red dog\n- a cat"),
        ("1. the big\nred dog\n2. a cat", "1. the big red dog\n2. a cat"),
        ("am\n3. Oktober", "am 3. Oktober"),
        ("> the big\n> red dog", "> the big\n> red dog"),
        ("one\ftwo\u2029three", "one\ftwo\u2029three"),
        ("name\tage\nBob\t12", "name\tage\nBob\t12"),
        ("那只大红\n狗睡觉。", "那只大红狗睡觉。"),
        ("안녕\n하세요", "안녕 하세요"),
        ("", ""),
        ("\n", "\n"),
    ],
)
def test_lines_of_a_paragraph_are_joined(text, joined):
    assert join_wrapped(text) == joined


@given(TEXTS)
def test_nothing_but_white_space_changes_and_a_second_time_nothing(text):
    joined = join_wrapped(text)
    assert "".join(joined.split()) == "".join(text.split())
    assert joined.count("\n\n") <= text.replace("\r", "").count("\n\n") + text.count("\r\n")
    assert join_wrapped(joined) == joined


@given(TEXTS)
def test_a_stream_of_lines_is_joined_like_a_text(text):
    text = text.replace("\r", "")
    assert "\n".join(join_lines(text.split("\n"))) == join_wrapped(text)


@pytest.mark.parametrize("part", ["a" + " " * 2_500 + "\nb", "ab\n" * 5_000])
def test_spaces_and_many_lines_take_linear_time(part):
    assert_grows_linearly(lambda count: join_wrapped(part * count), 1)
