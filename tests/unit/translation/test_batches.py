import threading

import pytest
import torch

from heedful.config.model import ModelConfig
from heedful.model.build import build_model
from heedful.translation.batches import search_batches


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_models_without_compiled_functions_search_one_batch_after_the_other(two_threads):
    model = build_model(ModelConfig(d_model=16, d_ff=16, heads=2), 9, 9, max_length=5)
    found = list(
        search_batches(lambda _: [[threading.get_ident()]], [[0], [1], [2]], [model], None)
    )
    assert found == [[[threading.get_ident()]]] * 3


def test_no_batch_gives_nothing():
    assert list(search_batches(lambda _: [], [], [], None)) == []
