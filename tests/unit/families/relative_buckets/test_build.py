"""Buckets of distances from settings."""

import pytest
import torch

from heedful.config.load import load_config
from heedful.errors import SettingError
from heedful.families.relative_buckets.buckets import RelativeBuckets
from heedful.families.relative_buckets.config import BucketSettings
from heedful.model.embedding import NoPositions
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Encoder
from heedful.model.packed import why_not_packed
from tests.support.models import batch, small

CHOSEN = "model.positions=relative-buckets"
SETTINGS = {"positions": "relative-buckets", "relative_buckets": {"count": 6, "max_distance": 9}}


def drawn(**changes):
    """A model whose tables are not zero."""
    model = small(**{**SETTINGS, **changes})
    generator = torch.Generator().manual_seed(4)
    for part in model.modules():
        if isinstance(part, RelativeBuckets):
            part.weight.data.normal_(0.0, 2.0, generator=generator)
    return model


def test_each_side_has_one_table_for_all_layers():
    model = small(**SETTINGS, encoder_heads=4)
    shapes = {n: tuple(p.shape) for n, p in model.named_parameters() if "score_bias" in n}
    assert shapes == {"encoder.score_bias.weight": (6, 4), "decoder.score_bias.weight": (6, 2)}
    assert model.encoder.score_bias.bidirectional and not model.decoder.score_bias.bidirectional
    assert isinstance(model.source_positions, NoPositions)
    assert isinstance(model.target_positions, NoPositions)


def test_order_counts_by_the_tables_alone():
    source, target = batch()
    source, target = source[:1], target[:1]
    plain, with_order = small(positions="none"), drawn()
    turned = source.flip(1)
    assert torch.allclose(
        plain.states(source, target), plain.states(turned, target), atol=1e-5, rtol=1e-4
    )
    moved = with_order.states(source, target) - with_order.states(turned, target)
    assert moved.abs().max() > 0.05


def test_gradients_reach_both_tables():
    model = drawn().train()
    model.states(*batch()).square().sum().backward()
    assert model.encoder.score_bias.weight.grad.abs().sum() > 0
    assert model.decoder.score_bias.weight.grad.abs().sum() > 0


def test_a_gpu_s_packed_rows_are_not_for_it():
    reason = "RelativeBuckets is added to the scores and so needs padded rows"
    assert why_not_packed(small(**SETTINGS)) == reason


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["model.relative_buckets.max_distance=16"], "max_distance` must be above half"),
        (["model.relative_buckets.count=3"], "model.relative_buckets.count"),
        (["model.position_offset=1"], "`model.position_offset` applies only if"),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_refused(settings, words):
    with pytest.raises(SettingError) as caught:
        load_config("tiny", [CHOSEN, *settings])
    assert words in str(caught.value)


def test_its_table_acts_with_these_positions_alone():
    load_config("tiny", [CHOSEN, "model.relative_buckets.count=8"])
    with pytest.raises(SettingError, match=r"`model.relative_buckets.count` applies only if"):
        load_config("tiny", ["model.relative_buckets.count=8"])


def test_layers_in_python_have_the_same_refusals():
    sizes = {"d_model": 8, "d_ff": 8, "heads": 2}

    def build(config):
        return RelativeBuckets(config.heads)

    assert Encoder(LayerConfig(**sizes, score_bias=build), 1)(torch.randn(1, 3, 8)).shape[1] == 3
    with pytest.raises(SettingError, match="`window` must be None if `score_bias` is set"):
        LayerConfig(**sizes, score_bias=build, window=3)


def test_settings_outside_their_range_are_refused():
    with pytest.raises(SettingError, match="max_distance"):
        BucketSettings(max_distance=2_000_000)
