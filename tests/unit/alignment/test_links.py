"""Links written, read, scored and symmetrized, each against sets and matrices in plain loops."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.alignment.links import (
    SYMMETRIZATIONS,
    GoldLinks,
    LinkCounts,
    count_links,
    read_gold,
    read_links,
    symmetrize,
    write_gold,
    write_links,
)
from heedful.errors import SettingError, TextError

SIZE = 6
LINKS = st.frozensets(st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)), max_size=14)
GOLD = st.tuples(LINKS, LINKS).map(lambda pair: GoldLinks(pair[0], pair[0] | pair[1]))


@settings(max_examples=30)
@given(LINKS)
def test_links_are_read_as_they_were_written(links):
    assert read_links(write_links(links)) == links


@settings(max_examples=30)
@given(GOLD)
def test_gold_links_are_read_as_they_were_written(gold):
    assert read_gold(write_gold(gold)) == gold


def test_links_are_written_by_source_and_target_word():
    assert write_links({(10, 0), (2, 1), (2, 0)}) == "2-0 2-1 10-0"
    assert write_gold(GoldLinks(frozenset({(1, 1)}), frozenset({(1, 1), (0, 2)}))) == "0p2 1-1"
    assert read_links("") == frozenset()


@pytest.mark.parametrize("line", ["0-", "a-1", "0-1-2", "0:1", "-1-0", "0p1 x", "²-1"])
def test_what_is_no_link_is_refused_with_its_place(line):
    with pytest.raises(TextError, match=r"gold\.txt, line 7 must hold links such as 0-0 1-2"):
        read_gold(line, "gold.txt, line 7")


def test_possible_links_are_refused_where_links_are_found():
    with pytest.raises(TextError, match="allowed only in gold sets"):
        read_links("0-0 1p1")


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
    counts = count_links(read_links("0-0 1-1 2-1 2-2"), gold)
    assert counts == LinkCounts(predicted=4, sure=3, predicted_sure=2, predicted_possible=3)
    assert counts.precision == 3 / 4
    assert counts.recall == 2 / 3
    assert counts.error_rate == pytest.approx(1 - 5 / 7)
    assert count_links(gold.sure, gold).error_rate == 0.0
    assert count_links(gold.possible, gold).error_rate == 0.0


CELLS = list(itertools.product(range(SIZE), range(SIZE)))
AROUND = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]


def slow_symmetrize(forward, backward, final, both):
    """Walk over the cells of a matrix, target word by target word, as symal does."""
    on = {(t, s): (s, t) in forward and (s, t) in backward for t, s in CELLS}
    union = {(t, s): (s, t) in forward or (s, t) in backward for t, s in CELLS}

    def lacking(cell):
        t, s = cell
        return (not any(on[t, x] for x in range(SIZE))) + (not any(on[x, s] for x in range(SIZE)))

    before = -1
    while before != sum(on.values()):
        before = sum(on.values())
        for t, s in CELLS:
            for down, right in AROUND if on[t, s] else ():
                cell = (t + down, s + right)
                if union.get(cell) and lacking(cell):
                    on[cell] = True
    for direction in (forward, backward) if final else ():
        for t, s in CELLS:
            if (s, t) in direction and lacking((t, s)) >= 1 + both:
                on[t, s] = True
    return {(s, t) for (t, s), linked in on.items() if linked}


@settings(max_examples=30)
@given(LINKS, LINKS)
def test_growing_is_that_of_a_matrix(forward, backward):
    assert symmetrize(forward, backward, "grow-diag") == slow_symmetrize(
        forward, backward, False, False
    )
    assert symmetrize(forward, backward) == slow_symmetrize(forward, backward, True, False)
    assert symmetrize(forward, backward, "grow-diag-final-and") == slow_symmetrize(
        forward, backward, True, True
    )


@settings(max_examples=30)
@given(LINKS, LINKS)
def test_every_way_is_between_the_intersection_and_the_union(forward, backward):
    found = {how: symmetrize(forward, backward, how) for how in SYMMETRIZATIONS}
    assert found["intersection"] == forward & backward
    assert found["union"] == forward | backward
    assert found["intersection"] <= found["grow-diag"]
    for final in ("grow-diag-final", "grow-diag-final-and"):
        assert found["grow-diag"] <= found[final] <= found["union"]
    # Whatever word has a link in some direction has one in the end.
    for side in (0, 1):
        assert {x[side] for x in found["grow-diag-final"]} == {x[side] for x in found["union"]}


def test_growing_of_a_known_example():
    # “michael geht davon aus , dass er im haus bleibt”: “geht davon aus” is one verb in English
    forward = read_links("0-0 1-1 2-1 3-1 5-3 6-4 7-7 8-8 9-5")
    backward = read_links("0-0 1-1 1-2 5-3 6-4 7-6 7-7 8-8 9-5")
    assert symmetrize(forward, backward, "intersection") == read_links(
        "0-0 1-1 5-3 6-4 7-7 8-8 9-5"
    )
    assert symmetrize(forward, backward, "grow-diag") == read_links(
        "0-0 1-1 1-2 2-1 3-1 5-3 6-4 7-6 7-7 8-8 9-5"
    )


def test_an_unknown_way_is_refused():
    with pytest.raises(SettingError, match="intersection, union, grow-diag"):
        symmetrize(frozenset(), frozenset(), "gdfa")
