"""Links written, read and scored, each against sets and matrices in plain loops."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.alignment.links import (
    GoldLinks,
    LinkCounts,
    count_links,
    read_gold,
    write_gold,
    write_links,
)
from heedful.errors import TextError

SIZE = 6
LINKS = st.frozensets(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)), max_size=14)
GOLD = st.tuples(LINKS, LINKS).map(lambda pair: GoldLinks(pair[0], pair[0] | pair[1]))


@settings(max_examples=30)
@given(LINKS)
def test_links_are_read_as_they_were_written(links):
    assert read_gold(write_links(links)) == (links, links)


@settings(max_examples=30)
@given(GOLD)
def test_gold_links_are_read_as_they_were_written(gold):
    assert read_gold(write_gold(gold)) == gold


def test_links_are_written_by_source_and_target_word():
    assert write_links({(10, 0), (2, 1), (2, 0)}) == "2-0 2-1 10-0"
    assert write_gold(GoldLinks(frozenset({(1, 1)}), frozenset({(1, 1), (0, 2)}))) == "0p2 1-1"
    assert read_gold("") == (frozenset(), frozenset())


@pytest.mark.parametrize("line", ["0-", "a-1", "0-1-2", "0:1", "-1-0", "0p1 x", "²-1"])
def test_what_is_no_link_is_refused_with_its_place(line):
    with pytest.raises(TextError, match=r"gold\.txt, line 7 must contain links such as 0-0 1-2"):
        read_gold(line, "gold.txt, line 7")


def slow_rates(found, gold):
    """Count link by link, as the formulas of Och and Ney (2003) read."""
    a = s = in_s = in_p = 0
    for links, (sure, possible) in zip(found, gold, strict=True):
        for link in links:
            a += 1
            in_s += link in sure
            in_p += link in possible
        for _ in sure:
            s += 1
    error = 1 - (in_s + in_p) / (a + s) if a + s else 0.0
    return (in_p / a if a else 1.0), (in_s / s if s else 1.0), error


@settings(max_examples=30)
@given(st.lists(st.tuples(LINKS, GOLD), max_size=4))
def test_rates_are_those_of_a_plain_count(corpus):
    found, gold = [each for each, _ in corpus], [each for _, each in corpus]
    counts = sum(map(count_links, found, gold), LinkCounts())
    rates = counts.precision, counts.recall, counts.error_rate
    assert rates == pytest.approx(slow_rates(found, gold))


def test_rates_of_a_small_example():
    gold = read_gold("0-0 1-2 2-1 2p2 3p3")
    counts = count_links(read_gold("0-0 1-1 2-1 2-2").sure, gold)
    assert counts == LinkCounts(predicted=4, sure=3, predicted_sure=2, predicted_possible=3)
    assert counts.precision == 3 / 4
    assert counts.recall == 2 / 3
    assert counts.error_rate == pytest.approx(1 - 5 / 7)
    assert count_links(gold.sure, gold).error_rate == 0.0
    assert count_links(gold.possible, gold).error_rate == 0.0
