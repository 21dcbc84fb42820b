import threading

import pytest
import torch

from heedful.config.model import ModelConfig
from heedful.families.build import build_model
from heedful.translation import batches
from heedful.translation.batches import search_batches


@pytest.fixture
def model():
    return build_model(ModelConfig(d_model=16, d_ff=16, heads=2), 9, 9, max_length=5)


def who(_):
    """Which thread searches, with how many of torch's."""
    return [[threading.get_ident(), torch.get_num_threads()]]


def test_models_without_compiled_functions_search_one_batch_after_the_other(model):
    torch.set_num_threads(2)
    found = list(search_batches(who, [[0], [1], [2]], [model], None))
    assert found == [who(0)] * 3


@pytest.mark.parametrize(
    ("threads", "count", "workers"), [(4, 3, 2), (4, 9, 4), (6, 5, 3), (3, 2, 1), (1, 5, 1)]
)
def test_no_thread_is_idle(model, monkeypatch, threads, count, workers):
    monkeypatch.setattr(batches, "is_compiled", lambda _: True)
    torch.set_num_threads(threads)
    found = list(search_batches(who, [[row] for row in range(count)], [model], None))
    together, own = found[: count - count % workers], found[count - count % workers :]
    assert [one[0][1] for one in together] == [threads // workers] * len(together)
    assert own == [who(0)] * len(own)


def test_an_observer_sees_one_batch_after_the_other(model, monkeypatch):
    monkeypatch.setattr(batches, "is_compiled", lambda _: True)
    torch.set_num_threads(2)
    assert list(search_batches(who, [[0], [1]], [model], lambda _: None)) == [who(0)] * 2


def test_no_batch_gives_nothing(model):
    assert list(search_batches(who, [], [model], None)) == []
