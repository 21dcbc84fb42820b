"""Where tokens are in their sentences: in rows, without padding, and in a search."""

import torch

from heedful.kernels.attention import Packing
from heedful.kernels.varlen import PackedRows
from heedful.model.kv_cache import KVCache
from heedful.model.layout import Layout
from heedful.model.parts import KeyValue
from heedful.model.relations import Places, Rotation


class Doubling(Rotation):
    """Adds the place to each number."""

    def forward(self, x, places):
        return x + places.numbers.unsqueeze(-1)


def test_places_of_padded_rows_are_in_order():
    numbers, longest = Layout().places(torch.zeros(3, 4, 2))
    assert numbers.tolist() == [[0, 1, 2, 3]] and longest == 4
    assert (
        Doubling()(torch.zeros(2, 3, 1), Places.in_order(3, torch.device("cpu")))[:, :, 0].tolist()
        == [[0, 1, 2]] * 2
    )


def test_places_without_padding_begin_anew_in_each_sentence():
    real = torch.tensor([[True, True, True], [True, False, False]])
    packing = Packing.of(real)
    numbers, longest = Layout(query_packing=packing).places(torch.zeros(1, 4, 2))
    assert numbers.tolist() == [[0, 1, 2, 0]] and longest == 3
    rows = PackedRows(torch.tensor([0, 3, 4], dtype=torch.int32), 5)
    layout = Layout(rows=(rows, rows), numbers=torch.tensor([0, 1, 2, 0]))
    numbers, longest = layout.places(torch.zeros(1, 4, 2))
    assert numbers.tolist() == [[0, 1, 2, 0]] and longest == 5


def test_the_newest_tokens_of_a_search_are_behind_all_open_slots():
    cache = KVCache.empty(1, KeyValue(torch.zeros(2, 2, 4, 3), torch.zeros(2, 2, 4, 3)))
    generator = torch.Generator().manual_seed(1)
    for length in range(150):
        cache = cache.advance(3)
        bias = cache.mask_bias.unsqueeze(1).repeat(1, 2, 1, 1)
        assert Places.of_newest(bias).numbers.tolist() == [[length]]
        rows = torch.randint(3, (2, 3), generator=generator) + torch.tensor([[0], [3]])
        cache = cache.select(rows.flatten())
