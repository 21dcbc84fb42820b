import threading

import pytest
import torch

from heedful.machine.threads import map_in_threads


def test_calls_run_beside_each_other_and_results_come_in_order():
    torch.set_num_threads(4)
    meet = threading.Barrier(2, timeout=60)  # nobody passes it alone

    def call(number):
        meet.wait()
        return number, torch.get_num_threads()

    found = list(map_in_threads(call, range(6), 2))
    assert found == [(number, 2) for number in range(6)]


def test_other_threads_have_all_of_torchs_threads():
    torch.set_num_threads(4)
    found = []

    def look():
        found.append(torch.get_num_threads())

    def call(_):
        other = threading.Thread(target=look)
        other.start()
        other.join()
        look()

    list(map_in_threads(call, range(1), 4))
    look()
    assert found == [4, 1, 4]


def test_after_a_failure_no_more_calls_begin():
    begun = []
    goes_on = threading.Event()

    def call(number):
        begun.append(number)
        if number == 0:
            raise ValueError("the first fails")
        goes_on.wait(60)

    def items():
        yield from range(3)
        goes_on.set()  # the fourth is asked for when three are on their way
        yield from range(3, 100)

    with pytest.raises(ValueError, match="the first fails"):
        list(map_in_threads(call, items(), 2))
    assert set(begun) <= {0, 1, 2, 3}


def test_few_items_are_fetched_ahead():
    asked = []
    results = map_in_threads(lambda number: number, (asked.append(n) or n for n in range(50)), 2)
    assert next(results) == 0
    assert len(asked) == 4
    results.close()


def test_more_workers_than_threads_have_one_each():
    torch.set_num_threads(1)
    assert list(map_in_threads(lambda _: torch.get_num_threads(), range(3), 3)) == [1, 1, 1]
