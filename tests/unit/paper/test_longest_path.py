import pytest

from heedful.families.table1 import LayerSizes
from heedful.paper.layer_kinds import KINDS
from heedful.paper.longest_path import find_longest_path


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_gradients_find_the_path_that_the_formula_gives(name, causal):
    for n in (2, 5, 14):
        s = LayerSizes(n, 4, k=3, r=6)
        assert find_longest_path(name, s, causal) == KINDS[name].longest_path(s, causal)


def test_dilations_that_grow_past_both_ends_leave_positions_unread():
    s = LayerSizes(20, 4, k=3)
    # 19 = 27 - 9 + 1, but 27 and -9 lead out of the sequence
    assert find_longest_path("dilated convolution", s, False) is None
    assert find_longest_path("dilated convolution", s, True) == 3
