import math

import pytest

from heedful.families.table1 import LayerSizes
from heedful.paper.layer_kinds import KINDS, window

SIZES = LayerSizes(n=512, d=512, k=3, r=16)


@pytest.mark.parametrize(
    ("name", "printed", "exact"),
    [
        ("self-attention", 512**3, 2 * 512**3 + 4 * 512**3),
        pytest.param("recurrent", 512**3, 8 * 512**3, marks=pytest.mark.family("recurrent")),
        ("convolution", 3 * 512**3, 3 * 512**3),
        ("dilated convolution", 3 * 512**3, 3 * 512**3),
        ("separable convolution", 3 * 512**2 + 512**3, 3 * 512**2 + 512**3),
        ("restricted self-attention", 16 * 512**2, 2 * 512 * 17 * 512 + 4 * 512**3),
    ],
)
def test_costs_are_those_of_the_papers_letters(name, printed, exact):
    assert KINDS[name].printed(SIZES) == printed
    assert window(SIZES).width == 17
    assert KINDS[name].exact(SIZES) == exact


@pytest.mark.parametrize("n", [2, 5, 9, 28, 100])
def test_longest_paths_are_the_closed_forms(n):
    s = LayerSizes(n, 4, k=3, r=8)
    paths = {
        name: tuple(kind.longest_path(s, causal) for causal in (False, True))
        for name, kind in KINDS.items()
    }
    assert paths["self-attention"] == (1, 1)
    assert paths.get("recurrent", (n, n)) == (n, n)
    assert paths["convolution"] == (n - 1, math.ceil((n - 1) / 2))
    tiny = 1e-9  # logarithms of powers are not exact
    assert paths["dilated convolution"] == (
        math.ceil(math.log(2 * n - 1, 3) - tiny),
        math.ceil(math.log(n, 3) - tiny),
    )
    assert paths["restricted self-attention"] == (
        math.ceil((n - 1) / 4),
        math.ceil((n - 1) / 7),
    )
