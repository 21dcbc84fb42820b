"""One map for each relative position is a convolution's kernel."""

import pytest
import torch
from torch import nn

from heedful.config.model import AttentionConfig
from heedful.errors import SettingError
from heedful.families.relative_maps.maps import RelativeMaps
from heedful.model.flops import RowLengths
from heedful.model.layout import Layout, unpad
from tests.support.models import small

REAL = torch.arange(8) < torch.tensor([[8], [3]])


def test_maps_of_relative_positions_are_torch_s_kernel():
    layer, x = RelativeMaps(6, 5), torch.randn(2, 8, 6)
    theirs = nn.Conv1d(6, 6, 5, padding=2)
    weight = layer.convolution.weight  # (outputs, kernel, inputs)
    theirs.weight.data, theirs.bias.data = weight.data.transpose(1, 2), layer.convolution.bias.data
    found, _ = layer(x, x)
    torch.testing.assert_close(found, theirs(x.transpose(1, 2)).transpose(1, 2))
    for place in range(8):
        expected = layer.convolution.bias.clone()
        for distance in range(-2, 3):
            if 0 <= place + distance < 8:
                expected = expected + weight[:, distance + 2] @ x[0, place + distance]
        torch.testing.assert_close(found[0, place], expected)


def test_as_many_positions_come_before_as_after():
    with pytest.raises(SettingError, match="`width` must be odd"):
        RelativeMaps(8, 2)


def test_padding_is_as_nothing():
    layer, x = RelativeMaps(6, 5), torch.randn(2, 8, 6)
    found, _ = layer(x, x, REAL[:, None, None])
    alone, _ = layer(x[1:, :3], x[1:, :3])
    torch.testing.assert_close(found[1, :3], alone[0])
    short, packing = unpad(x, REAL, 8)
    assert packing is not None
    packed, _ = layer(short, short, Layout(REAL[:, None, None], packing, packing))
    torch.testing.assert_close(packing.unpack(packed)[REAL], found[REAL])


def test_it_costs_a_map_for_each_neighbor():
    model = small(attention=AttentionConfig(encoder="convolution", window=4))
    layer = model.encoder.layers[0].self_attention
    assert layer.convolution.weight.shape == (16, 5, 16)
    lengths = RowLengths.padded([4, 1])
    assert layer.flops(lengths, leaves_out=True) == 2 * 5 * 16 * 16 * 8
    assert model.encoder.window is None
