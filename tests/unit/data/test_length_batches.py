from hypothesis import given
from hypothesis import strategies as st

from heedful.data.length_batches import by_length


@given(st.lists(st.integers(0, 50), max_size=80), st.integers(1, 200))
def test_groups_cover_everything_once_within_the_budget(lengths, budget):
    groups = list(by_length(lengths, budget))
    assert sorted(index for group in groups for index in group) == list(range(len(lengths)))
    for group in groups:
        widest = max(1, *(lengths[index] for index in group))
        assert len(group) == 1 or len(group) * widest <= budget


def test_items_of_a_group_can_be_limited():
    assert [len(group) for group in by_length([1] * 7, 100, most_rows=3)] == [3, 3, 1]


def test_the_longest_come_first():
    assert list(by_length([1, 9, 5], 10)) == [[1], [2, 0]]
