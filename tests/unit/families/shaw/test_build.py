"""Vectors of distances from settings."""

import pytest

from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.families.shaw.config import ShawSettings
from heedful.families.shaw.vectors import DistanceVectors
from heedful.model.flops import RowLengths
from heedful.model.graphed import can_record
from heedful.model.known_layers import is_known
from heedful.model.packed import why_not_packed
from heedful.model.weights import parameter_count
from tests.support.models import batch, small

SETTINGS = {"positions": "shaw", "shaw": {"max_distance": 3}}


def test_each_layer_has_tables_that_its_heads_share():
    model = small(**SETTINGS, encoder_heads=4)
    shapes = {n: tuple(p.shape) for n, p in model.named_parameters() if "relation" in n}
    assert shapes == {
        **{
            f"encoder.layers.{n}.self_attention.relation.{kind}_vectors": (7, 4)
            for n in (0, 1)
            for kind in ("key", "value")
        },
        **{
            f"decoder.layers.{n}.self_attention.relation.{kind}_vectors": (7, 8)
            for n in (0, 1)
            for kind in ("key", "value")
        },
    }
    assert all(p.any() for n, p in model.named_parameters() if "relation" in n)
    count = parameter_count(model) - parameter_count(small(positions="none", encoder_heads=4))
    assert count == 2 * 2 * 7 * (4 + 8)


def test_its_operations_are_counted():
    lengths = RowLengths.unpadded([5])
    model, plain = small(**SETTINGS), small(positions="none")
    more = model.encoder.flops(lengths) - plain.encoder.flops(lengths)
    # 2 layers, 5 queries, 2 heads, 7 vectors of 8 numbers for keys and as many for values
    assert more == 2 * 5 * 2 * 2 * 7 * (8 + 8)


def test_gradients_reach_all_tables():
    model = small(**SETTINGS).train()
    model.states(*batch()).square().sum().backward()
    tables = [part for part in model.modules() if isinstance(part, DistanceVectors)]
    assert len(tables) == 4
    for part in tables:
        assert part.key_vectors.grad.abs().sum() > 0 and part.value_vectors.grad.abs().sum() > 0
    behind = tables[-1].key_vectors.grad[4:]
    assert not behind.any()  # a decoder sees no key behind


def test_recorded_graphs_have_it_and_compiled_layers_and_packed_rows_do_not():
    model = small(**SETTINGS)
    assert can_record(model) and not is_known(model.decoder)
    reason = "DistanceVectors changes the scores and so needs padded rows"
    assert why_not_packed(model) == reason


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["model.attention.score=additive"], "`model.attention.score` must be scaled or unscaled"),
        (["model.shaw.max_distance=0"], "model.shaw.max_distance"),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_refused(settings, words):
    with pytest.raises(SettingError) as caught:
        load_config("tiny", ["model.positions=shaw", *settings])
    assert words in str(caught.value)


def test_its_table_acts_with_these_positions_alone():
    load_config("tiny", ["model.positions=shaw", "model.shaw.max_distance=8"])
    with pytest.raises(SettingError, match=r"`model.shaw.max_distance` applies only if"):
        load_config("tiny", ["model.shaw.max_distance=8"])


def test_distances_outside_their_range_are_refused():
    with pytest.raises(SettingError, match="max_distance"):
        ShawSettings(max_distance=2_000_000)
