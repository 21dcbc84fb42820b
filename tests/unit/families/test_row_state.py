from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from heedful.families.row_state import RowState


@dataclass(frozen=True)
class Sample(RowState):
    of_source: ClassVar[tuple[str, ...]] = ("keys", "mask")

    layers: tuple[tuple[Tensor, ...], ...]
    keys: Tensor | None
    mask: Tensor
    length: int = 0


def test_hypotheses_and_sentences_are_selected_each_by_their_own_rows():
    rows, source = torch.arange(4.0), torch.arange(2.0)
    state = Sample(((rows, -rows), (rows + 10,)), None, source, length=3)
    assert state.sentences == 2
    same = state.select(torch.tensor([1, 1, 3, 2]))
    assert same.layers[0][1].tolist() == [-1, -1, -3, -2]
    assert same.layers[1][0].tolist() == [11, 11, 13, 12]
    assert same.mask is source and same.keys is None and same.length == 3
    fewer = state.select(torch.tensor([3]), torch.tensor([1]))
    assert (
        fewer.sentences == 1 and fewer.mask.tolist() == [1] and fewer.layers[0][0].tolist() == [3]
    )
