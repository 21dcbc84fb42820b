import pytest

from heedful.families.table1 import LayerSizes
from heedful.paper.dependent_products import count_products
from heedful.paper.layer_kinds import KINDS

SIZES = LayerSizes(n=64, d=128, k=3, r=16)


@pytest.mark.parametrize(
    ("name", "chain"),
    [
        ("self-attention", 4),  # projections, scores, mixing, output
        ("restricted self-attention", 4),
        pytest.param("recurrent", 64, marks=pytest.mark.family("recurrent")),
        ("convolution", 1),
        ("dilated convolution", 1),
        ("separable convolution", 2),
    ],
)
def test_products_that_wait_are_counted(name, chain):
    found = count_products(name, SIZES)
    exact = KINDS[name].exact(SIZES)
    assert abs(found.chain - chain) <= (name == "recurrent")
    if name == "restricted self-attention":  # blocks multiply more than the band
        assert exact <= found.multiply_adds < 2 * exact
    else:
        assert found.multiply_adds == pytest.approx(exact, rel=0.02)
