from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from heedful.text.blanks import outer_blanks, read_source, read_target

BLANKS = " \t\n\r\v\f\u00a0\u202f\u2009\u3000\u2028\x85"
lines = st.text(st.sampled_from("ab." + BLANKS))


@given(lines)
def test_words_of_a_source_have_one_space_between_them(line):
    read = read_source(line)
    assert read.split(" ") == (line.split() or [""])
    assert read_source(read) == read


@given(lines)
def test_a_target_has_no_outer_and_no_doubled_white_space(line):
    read = read_target(line)
    assert read == read.strip()
    assert read.split() == line.split()
    assert not any(first.isspace() and second.isspace() for first, second in pairwise(read))
    assert read_target(read) == read


def test_a_single_blank_of_a_target_stays_as_it_is():
    assert read_target("Dix\u202fmille\u00a0: oui\u3000!") == "Dix\u202fmille\u00a0: oui\u3000!"


@given(lines)
def test_outer_white_space_is_what_stripping_takes_away_but_for_line_ends(line):
    before, after = outer_blanks(line)
    assert (before + after).strip() == ""
    assert len(f"{before}a{after}".splitlines()) == 1
    on_line = "".join(line.splitlines())
    if on_line.strip() == line.strip():  # no line end between words
        assert f"{before}{line.strip()}{after}" == on_line
