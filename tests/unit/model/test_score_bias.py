"""What is added to scores by distance: for whole sequences, and for the slots of a cache."""

import pytest
import torch

from heedful.model.kv_cache import KVCache
from heedful.model.layer_config import LayerConfig
from heedful.model.layers import Decoder, Encoder
from heedful.model.layout import causal_mask
from heedful.model.parts import KeyValue
from heedful.model.score_bias import DistanceTable, ScoreBias, bias_of_pairs, bias_of_slots

NEVER = float("-inf")


class Slope(ScoreBias):
    """Subtracts the distance, once or twice."""

    def __init__(self, heads):
        super().__init__()
        self.factors = torch.nn.Parameter(torch.arange(1.0, heads + 1))

    def forward(self, distance):
        return -distance.abs().unsqueeze(1) * self.factors.view(-1, 1, 1)


def test_the_mask_is_in_the_bias_of_pairs():
    bias = bias_of_pairs(Slope(2), causal_mask(3), 3)
    assert bias[0, 0].tolist() == [[0, NEVER, NEVER], [-1, 0, NEVER], [-2, -1, 0]]
    assert bias[0, 1, 2].tolist() == [-4, -2, 0]
    assert bias_of_pairs(Slope(2), None, 3)[0, 0, 0].tolist() == [0, -1, -2]
    assert bias_of_pairs(None, causal_mask(3), 3) is None


def test_a_table_has_the_numbers_of_all_distances_within_reach():
    table = DistanceTable(Slope(2))
    for reach in (1, 64, 65, 70, 200, 3):
        numbers = table.up_to(reach)
        middle = numbers.size(1) // 2
        assert middle >= reach
        assert numbers.size(1) == 2 * middle + 1
        expected = -torch.arange(-middle, middle + 1).abs()
        assert torch.equal(numbers, torch.stack((expected, 2 * expected)).float())


def test_the_distance_of_a_slot_is_the_number_of_open_ones_behind_it():
    table = torch.tensor([[[0, NEVER, 0, NEVER, 0, NEVER], [NEVER, 0, 0, NEVER, NEVER, 0]]])
    bias = bias_of_slots(Slope(2), table, 2)
    assert bias[0, 0].tolist() == [
        [-2, NEVER, -1, NEVER, 0, NEVER],
        [NEVER, -2, -1, NEVER, NEVER, 0],
    ]
    assert bias[0, 1, 0].tolist() == [-4, NEVER, -2, NEVER, 0, NEVER]
    assert table[0, 0, 0] == 0  # the cache's own table stays
    assert bias_of_slots(None, table, 2).equal(table.unsqueeze(1).expand(-1, 2, -1, -1))


def test_it_holds_when_the_cache_moves_its_slots():
    cache = KVCache.empty(1, KeyValue(torch.zeros(1, 2, 4, 3), torch.zeros(1, 2, 4, 3)))
    generator = torch.Generator().manual_seed(1)
    for length in range(1, 200):
        cache = cache.advance(2)
        bias = bias_of_slots(Slope(2), cache.mask_bias, 2)[0, 0]
        for row in bias:
            assert sorted(row[row > NEVER].tolist()) == list(range(1 - length, 1))
        cache = cache.select(torch.randint(2, (2,), generator=generator))


def test_all_layers_of_a_stack_add_the_same():
    config = LayerConfig(8, 8, 2, dropout=0.0, score_bias=lambda layer: Slope(layer.heads))
    torch.manual_seed(1)
    encoder, decoder = Encoder(config, 2), Decoder(config, 2)
    x = torch.randn(2, 4, 8)
    weights = []
    encoder(x, weights=weights)
    plain = []
    encoder.score_bias = None
    encoder(x, weights=plain)
    first = plain[0].log() + bias_of_pairs(Slope(2), None, 4)
    torch.testing.assert_close(weights[0], first.softmax(-1))
    assert len(weights) == 2 and not torch.allclose(weights[1], plain[1])
    assert [name for name, _ in decoder.named_parameters() if "factors" in name] == [
        "score_bias.factors"
    ]


@pytest.mark.parametrize("causal", [True, False])
def test_padding_is_never_attended_to(causal):
    config = LayerConfig(8, 8, 2, dropout=0.0, causal_mask=causal, score_bias=lambda _: Slope(2))
    decoder = Decoder(config, 1)
    x = torch.randn(1, 4, 8)
    real = torch.tensor([[True, True, True, False]])
    changed = x.clone()
    changed[:, 3] = 9.0
    found = [decoder(y, x, real=real)[:, :3] for y in (x, changed)]
    torch.testing.assert_close(*found)
