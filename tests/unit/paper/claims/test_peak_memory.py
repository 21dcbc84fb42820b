import torch

from heedful.paper.claims.peak_memory import peak_bytes

NUMBERS = torch.ones(100)  # 400 bytes


def test_what_is_freed_does_not_count_on():
    def work():
        x = NUMBERS
        for _ in range(5):
            x = x + 1  # two of them at a time
        return x

    assert peak_bytes(work) == 800


def test_what_is_kept_adds_up():
    assert peak_bytes(lambda: [NUMBERS + n for n in range(5)]) == 2_000


def test_views_and_what_was_there_before_cost_nothing():
    assert peak_bytes(lambda: NUMBERS.view(10, 10).T.add_(0)) == 0
