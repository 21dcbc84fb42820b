"""The row of Table 1: an LSTM, as a model runs it and step by step."""

import torch

from heedful.families.recurrent.table1 import LAYER, RecurrenceUnderTest
from heedful.families.table1 import LayerSizes, RunsByStep, family_layers

SIZES = LayerSizes(n=12, d=64)


def test_its_row_is_offered():
    assert LAYER in family_layers()
    assert isinstance(LAYER.build(SIZES), RunsByStep)


def test_unrolling_ends_in_the_same_state():
    layer = RecurrenceUnderTest(SIZES)
    x = torch.randn(2, 12, 64)
    torch.testing.assert_close(layer.unrolled(x), layer(x)[:, -1])
    torch.testing.assert_close(layer.unrolled(x, 3), layer(x)[:, -1])
